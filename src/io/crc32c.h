/* Checksums of files' contents: CRC-32C, as in iSCSI and ext4. */
#ifndef SLP_CRC32C_H
#define SLP_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of data with the checksum `before` (0: none) followed by size bytes.  That of "123456789" is 0xe3069283.
 */
uint32_t slp_crc32c(uint32_t before, const void *data, size_t size);

#endif
