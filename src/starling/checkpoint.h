/* Checkpoints: everything that a run needs to continue as if it had never stopped, in one file.  Errors are reported as
 * base.h and io.h describe; doc/checkpoints.md explains more. */
#ifndef STARLING_CHECKPOINT_H
#define STARLING_CHECKPOINT_H

#include <starling/data.h>
#include <starling/nn.h>

#pragma GCC system_header
#ifdef __cplusplus
extern "C" {
#endif

/* The parts of a run that are saved and restored; NULL or 0: none.  The position of random numbers (sl_rng_get) is
 * always saved. */
struct sl_checkpoint_opts {
	sl_block *net;             /* its parameters and running statistics; NULL: the trainer's block */
	sl_trainer *trainer;       /* its states and averages, learning rate, schedule, steps */
	sl_loader *loader;         /* its order and position */
	sl_metric *const *metrics; /* SL_METRICS(loss, accuracy) */
	int nmetrics;
	const char *const *names; /* names of other tensors: sums, … */
	sl_tensor *const *tensors;
	int ntensors;
	int64_t *epoch, *step; /* the program's counters: read when saving, set when restoring */
	const char *note;      /* any text of the program, saved with the run */
	int keep;              /* saving: the path is a folder that keeps this many checkpoints, the newest */
};
#define SL_METRICS(...) .metrics = SL_ARRAY(sl_metric *, __VA_ARGS__), .nmetrics = SL_COUNT_(sl_metric *, __VA_ARGS__)

/* ---- saving ------------------------------------------------------------------------------------------------------ */

SL_API enum sl_status sl_checkpoint_save_at(const char *at, const char *path, struct sl_checkpoint_opts opts);
/* sl_checkpoint_save("run.safetensors", .trainer = trainer, .loader = loader, .step = &step) */
#define sl_checkpoint_save(path, ...) sl_checkpoint_save_at(SL_HERE, path, (struct sl_checkpoint_opts){__VA_ARGS__})

/* A checkpoint that is being written while the run continues. */
typedef struct sl_checkpoint_job sl_checkpoint_job;
SL_API sl_checkpoint_job *sl_checkpoint_begin_at(const char *at, const char *path, struct sl_checkpoint_opts opts);
#define sl_checkpoint_begin(path, ...) sl_checkpoint_begin_at(SL_HERE, path, (struct sl_checkpoint_opts){__VA_ARGS__})
SL_API bool sl_checkpoint_written(const sl_checkpoint_job *job);
SL_API enum sl_status sl_checkpoint_end_at(const char *at, sl_checkpoint_job *job);
#define sl_checkpoint_end(job) sl_checkpoint_end_at(SL_HERE, job)

/* ---- resuming --------------------------------------------------------------------------------------------------- */

SL_API enum sl_status sl_checkpoint_load_at(const char *at, const char *path, struct sl_checkpoint_opts opts);
#define sl_checkpoint_load(path, ...) sl_checkpoint_load_at(SL_HERE, path, (struct sl_checkpoint_opts){__VA_ARGS__})

/* The same in two steps, so that the note can be read before the rest is restored. */
typedef struct sl_checkpoint sl_checkpoint;
SL_API sl_checkpoint *sl_checkpoint_open_at(const char *at, const char *path);
#define sl_checkpoint_open(path) sl_checkpoint_open_at(SL_HERE, path)
SL_API const char *sl_checkpoint_path(const sl_checkpoint *checkpoint);
SL_API const char *sl_checkpoint_note(const sl_checkpoint *checkpoint);
SL_API enum sl_status sl_checkpoint_restore_at(const char *at, sl_checkpoint *checkpoint,
                                               struct sl_checkpoint_opts opts);
#define sl_checkpoint_restore(checkpoint, ...)                                                                         \
	sl_checkpoint_restore_at(SL_HERE, checkpoint, (struct sl_checkpoint_opts){__VA_ARGS__})
SL_API void sl_checkpoint_close(sl_checkpoint *SL_OPTIONAL checkpoint);
SL_API int sl_checkpoint_count(const char *folder);

#ifdef __cplusplus
}
#endif
#endif
