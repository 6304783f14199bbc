/* Checksums of files' contents: CRC-32C, as iSCSI, ext4 and others use it. */
#ifndef SLP_CRC32C_H
#define SLP_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of what has the checksum `before` (0: nothing) and size more bytes behind it.  That of "123456789" is 0xe3069283. */
uint32_t slp_crc32c(uint32_t before, const void *data, size_t size);

#endif
