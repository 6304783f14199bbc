/* Messages between processes (messages.c), which exchanges consist of (exchanges.c). */
#ifndef SLP_MESSAGES_H
#define SLP_MESSAGES_H

#include "dist/transport.h"

enum slp_message_kind { SLP_PIECE = 1, SLP_SUM, SLP_READY, SLP_VALUES, SLP_WAITS, SLP_FAREWELL, SLP_END };

/* The kind of a message, and of its contents. */
struct slp_head {
	uint32_t kind, dtype;
	uint64_t number, count; /* of elements of the whole exchange */
	int64_t rows;
	double lr;
	uint64_t bytes;  /* that follow */
	uint32_t spoilt; /* these are the reason */
	uint32_t gpu;    /* of SLP_READY: the values lie on a GPU */
	char name[SLP_DIST_NAME];
};

/* A message on its way. */
struct slp_message {
	struct slp_head head;
	char *data;  /* of head.bytes */
	size_t done; /* of head and data */
	bool wanted;
};

struct slp_peer {
	bool there; /* false: this process itself */
	struct slp_message in, out;
	enum slp_message_kind kind; /* of the incoming data */
	size_t room;                /* for the incoming data */
	bool parts; /* fewer bytes may come, followed by more messages; otherwise exactly this number is expected */
	bool waits, spoilt;
	char text[SLP_DIST_WHY]; /* the message that came instead of data */
	/* Of a sum, bytes of both pieces: the one that the receiver adds, then the sum of the sender's. */
	size_t came, gone;
	bool begun, heard; /* the first message has gone, and come */
};

struct slp_peers {
	int rank, size;
	double timeout, patience, latency; /* as in struct slp_place */
	const struct slp_carrier *carrier;
	struct slp_peer *list; /* one a rank */
	struct slp_interest *interests;
	bool broken;
	bool moved; /* something of an exchange has come or gone */
	uint64_t sent;
};
extern struct slp_peers slp_peers;

bool slp_is_done(const struct slp_message *m);
void slp_post(struct slp_peer *p, const struct slp_head *head, const void *data);
void slp_want(struct slp_peer *p, enum slp_message_kind kind, void *data, size_t bytes, bool parts);
/* Sends and receives everything posted, and what `more` posts before each poll (NULL: nothing).  expected: the head of
 * incoming messages, except their kind. */
bool slp_exchange_messages(const struct slp_head *expected, void (*more)(void *), void *arg, char why[SLP_DIST_WHY]);
/* Waits as long as messages are late, for tests. */
void slp_be_late(void);
/* During a sum that does not use messages: checks as far as possible that all ranks are alive; tells them that this
 * process only waits; and at the end of the timeout, finds the ranks that have not said so. */
bool slp_look_at_others(char why[SLP_DIST_WHY]);
void slp_tell_waiting(uint64_t number);
bool slp_blame_silent(const struct slp_exchange *x, char why[SLP_DIST_WHY]);
/* Tells all ranks the reason why no more exchanges will follow. */
enum slp_outcome slp_give_up(const char *why);
/* Returns false; sets why, unless it has a text already. */
bool slp_dist_fail(char why[SLP_DIST_WHY], const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sends no more to this peer. */
void slp_close_out(struct slp_peer *p, double deadline);

#endif
