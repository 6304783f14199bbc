/* Anything of each type that public functions take, and what is asked of a call.  tests/misuse/generate writes the
 * calls. */
#ifndef SLP_TESTS_MISUSE_POOL_H
#define SLP_TESTS_MISUSE_POOL_H

#include <starling.h>
#include <starling/dist.h>
#include <starling/own.h>

struct one_call {
	const char *name;
	void (*call)(void);
};
extern const struct one_call all_calls[]; /* ends with a NULL name */

enum { ARRAY = 1024, MEMORY = 1 << 20 }; /* elements of arrays, as many as a count may say; bytes of memory */
extern const char here[];
extern int failures;

/* ---- values ------------------------------------------------------------------------------------------------------ */

bool sometimes(void);
bool often(void);
int any_int(void);
int any_count(void);
int any_enum(void);
int64_t any_int64_t(void);
uint64_t any_uint64_t(void);
size_t any_size_t(void);
double any_double(void);
bool any_bool(void);
char any_char(void);
sl_shape any_sl_shape(void);
sl_shape any_small_shape(void); /* of what there is memory for, or of none */
sl_device any_sl_device(void);
const char *any_text(void);
FILE *any_file_stream(void);
void *any_memory(void);
void *any_function(void);
void *any_results(void);

sl_tensor *any_tensor(void);
sl_block *any_block(void);
sl_param *any_param(void);
sl_trainer *any_trainer(void);
sl_dataset *any_dataset(void);
sl_loader *any_loader(void);
sl_metric *any_metric(void);
sl_cache *any_cache(void);
sl_graph *any_graph(void);
sl_plan *any_plan(void);
sl_step *any_step(void);
sl_balance *any_balance(void);
sl_autotune *any_autotune(void);
sl_file *any_sl_file(void);
sl_checkpoint *any_checkpoint(void);
sl_checkpoint_job *any_checkpoint_job(void);
const sl_op *any_op(void);

#define ANY_ARRAY(element)                                                                                             \
	({                                                                                                             \
		void **array_ = any_results();                                                                         \
		for (int i_ = 0; array_ && i_ < 4; i_++) array_[i_] = (void *)(element);                               \
		array_;                                                                                                \
	})
double *any_array_of_double(void);
int *any_array_of_int(void);
int64_t *any_array_of_int64_t(void);
struct sl_batch *any_array_of_sl_batch(void);
sl_device *any_array_of_sl_device(void);
struct sl_energy *any_array_of_sl_energy(void);
struct sl_gradcheck_worst *any_array_of_sl_gradcheck_worst(void);
struct sl_op_attr *any_array_of_sl_op_attr(void);
struct sl_optimizer *any_array_of_sl_optimizer(void);
struct sl_param_name *any_array_of_sl_param_name(void);
struct sl_plan_number *any_array_of_sl_plan_number(void);
struct sl_sample *any_array_of_sl_sample(void);
struct sl_schedule *any_array_of_sl_schedule(void);
sl_shape *any_array_of_sl_shape(void);
struct sl_stats *any_array_of_sl_stats(void);
void **any_array_of_void(void);
struct sl_transform *any_array_of_sl_transform(void);

/* ---- a call ------------------------------------------------------------------------------------------------------ */

void begin(const char *name);
void taken(const void *object); /* the call takes it over */
void taken_some(void *const *objects, int count);
void end_status(enum sl_status status, int placed);
void end_pointer(const void *result, int placed);
void end_any(void);

/* What a result is good for; it is freed afterwards. */
void try_tensor(sl_tensor *t);
void try_block(sl_block *b);
void try_trainer(sl_trainer *t);
void try_dataset(sl_dataset *d);
void try_loader(sl_loader *l);
void try_metric(sl_metric *m);
void try_cache(sl_cache *c);
void try_graph(sl_graph *g);
void try_plan(sl_plan *p);
void try_step(sl_step *s);
void try_balance(sl_balance *b);
void try_autotune(sl_autotune *t);
void try_file(sl_file *f);
void try_checkpoint(sl_checkpoint *c);
void try_checkpoint_job(sl_checkpoint_job *j);

/* ---- around the calls -------------------------------------------------------------------------------------------- */

void pool_seed(uint64_t seed);
extern bool pool_sensible; /* numbers within limits: arrays are as long as they say */
void pool_make(void);      /* tensors that calls share */
void pool_sweep(void);     /* frees what the last call was given */
void pool_free(void);
void check_pending(const char *when); /* reports what is pending, until nothing is */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
