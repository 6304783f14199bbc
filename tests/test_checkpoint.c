/* Checkpoints: a run that goes on has the bits of one that was never stopped; damage is found; what does not fit is
 * told. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <starling.h>

#include "blocks.h"
#include "capture.h"
#include "chaos/run.h"
#include "folder.h"
#include "io/crc32c.h"
#include "io/numbered.h"
#include "io/params.h"
#include "io_faults.h"
#include "nn/nn.h"

static sl_dataset *data;

static void begin(int teams)
{
	char folder[PATH_MAX];
	slp_begin((struct sl_config){.teams = teams, .seed = 3});
	data = run_data(slp_scratch_path("", folder), RUN_SAMPLES, 1);
	CHECK(data != NULL);
}

static void end(void)
{
	sl_dataset_free(data);
	slp_end_well();
}

static void remove_folder(const char *folder)
{
	DIR *dir = opendir(folder);
	for (struct dirent *e; dir && (e = readdir(dir));)
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) unlinkat(dirfd(dir), e->d_name, 0);
	if (dir) closedir(dir);
	CHECK_SAYING(rmdir(folder) == 0, "%s: %s", folder, strerror(errno));
}

/* ---- the same bits ----------------------------------------------------------------------------------------------- */

enum { STOP = 5, AFTER = 9 }; /* an epoch has six batches, the last one of four rows */

static uint32_t uninterrupted(struct run_options o, int steps)
{
	struct run r;
	begin(o.shards ? o.shards : 1);
	CHECK(run_start(&r, o, data) && run_steps(&r, steps));
	uint32_t bits = run_bits(&r);
	run_stop(&r);
	end();
	return bits;
}

/* Saves after `stop` steps, and goes on: saving changes nothing. */
static uint32_t saved(struct run_options o, const char *path, int stop, int steps)
{
	struct run r;
	begin(o.shards ? o.shards : 1);
	CHECK(run_start(&r, o, data) && run_steps(&r, stop));
	CHECK_OK(sl_checkpoint_save(path, RUN_STATE(&r)));
	CHECK(run_steps(&r, steps - stop));
	uint32_t bits = run_bits(&r);
	run_stop(&r);
	end();
	return bits;
}

/* Another engine, other first values, other random numbers. */
static uint32_t resumed(struct run_options o, const char *path, int stop, int steps)
{
	struct run r;
	begin(o.shards ? o.shards : 1);
	sl_seed(1234);
	CHECK(run_start(&r, o, data));
	CHECK_OK(sl_checkpoint_load(path, RUN_STATE(&r)));
	CHECK(r.steps == stop && sl_trainer_steps(r.trainer) == stop && r.epoch == (stop - (stop > 0)) / 6);
	CHECK(run_steps(&r, steps - stop));
	uint32_t bits = run_bits(&r);
	run_stop(&r);
	end();
	return bits;
}

static void check_resumed(struct run_options o, struct run_options later, int stop)
{
	char path[PATH_MAX];
	slp_scratch_path("run.safetensors", path);
	uint32_t bits = uninterrupted(o, AFTER), with = saved(o, path, stop, AFTER),
	         again = resumed(later, path, stop, AFTER);
	CHECK_SAYING(bits == with, "network %d, eager %d, %d shards: saving after %d steps changes the bits", o.net,
	             o.eager, o.shards, stop);
	CHECK_SAYING(bits == again,
	             "network %d, eager %d, %d shards on %d devices: going on after %d steps changes the bits", o.net,
	             o.eager, o.shards, later.devices, stop);
	remove(path);
}

static void test_resumed(void)
{
	for (enum run_net net = RUN_LENET; net <= RUN_RESNET; net++)
		for (int eager = 0; eager < 2; eager++) {
			struct run_options o = {.net = net, .eager = eager};
			check_resumed(o, o, STOP);
		}
}

/* After the first step, at the end of an epoch, at the beginning of one. */
static void test_moments(void)
{
	const struct run_options o = {.net = RUN_LENET};
	check_resumed(o, o, 1);
	check_resumed(o, o, 6);
	check_resumed(o, o, 7);
}

/* Two devices; and a batch in two parts on another number of devices than before.  There are two teams each time: what
 * oneDNN adds up depends on the threads of a team. */
static void test_devices(void)
{
	for (enum run_net net = RUN_LENET; net <= RUN_RESNET; net++) {
		const struct run_options one = {.net = net, .shards = 2, .devices = 1},
		                         two = {.net = net, .shards = 2, .devices = 2};
		check_resumed(two, two, STOP);
		check_resumed(two, one, STOP);
		check_resumed(one, two, STOP);
	}
}

/* Values are those of the moment, whatever happens before they are written. */
static void test_asynchronous(void)
{
	const struct run_options o = {.net = RUN_LENET};
	char path[PATH_MAX];
	struct run r;
	slp_scratch_path("run.safetensors", path);
	begin(1);
	CHECK(run_start(&r, o, data) && run_steps(&r, STOP));
	io_slow(20000);
	sl_checkpoint_job *job = sl_checkpoint_begin(path, RUN_STATE(&r));
	CHECK(job && run_steps(&r, AFTER - STOP));
	CHECK_OK(sl_checkpoint_end(job));
	io_slow(0);
	uint32_t bits = run_bits(&r);
	run_stop(&r);
	end();
	CHECK_SAYING(resumed(o, path, STOP, AFTER) == bits, "the values of another moment");
	remove(path);
}

/* The engine may be stopped while one is being written. */
static void test_shutdown(void)
{
	char path[PATH_MAX];
	struct run r;
	slp_scratch_path("run.safetensors", path);
	begin(1);
	CHECK(run_start(&r, (struct run_options){.net = RUN_LENET}, data) && run_steps(&r, 1));
	io_slow(50000);
	sl_checkpoint_job *job = sl_checkpoint_begin(path, RUN_STATE(&r));
	run_stop(&r);
	end();
	io_slow(0);
	CHECK(sl_checkpoint_written(job));
	CHECK_OK(sl_checkpoint_end(job));
	CHECK(sl_checkpoint_written(NULL));
	remove(path);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void test_checksum(void)
{
	char text[100];
	CHECK(slp_crc32c(0, "123456789", 9) == 0xe3069283);
	memset(text, 'x', sizeof text);
	for (size_t i = 0; i <= sizeof text; i++)
		CHECK(slp_crc32c(slp_crc32c(0, text, i), text + i, sizeof text - i) ==
		      slp_crc32c(0, text, sizeof text));
}

/* Something small: a dense layer. */
static sl_block *small_net(int units)
{
	sl_block *net = sl_sequential(sl_dense(units, .in_units = 3));
	sl_initialize(net, .init = sl_normal_init(1));
	return net;
}

static void test_contents(void)
{
	char path[PATH_MAX];
	slp_begin_plainly();
	slp_scratch_path("run.safetensors", path);
	sl_block *net = small_net(2), *other = small_net(2);
	SL_SCOPE {
		sl_tensor *average = sl_full(SL_SHAPE(4), 2.5), *wrong = sl_zeros(SL_SHAPE(4));
		const char *names[] = {"average"};
		struct sl_rng before = sl_rng_get();
		CHECK_OK(sl_checkpoint_save(path, .net = net, .names = names, .tensors = &average, .ntensors = 1,
		                            .note = "ein Gruß"));
		sl_seed(5);
		sl_checkpoint *c = sl_checkpoint_open(path);
		CHECK(c && !strcmp(sl_checkpoint_note(c), "ein Gruß") && !strcmp(sl_checkpoint_path(c), path));
		CHECK_OK(sl_checkpoint_restore(c, .net = other, .names = names, .tensors = &wrong, .ntensors = 1));
		sl_checkpoint_close(c);
		CHECK(sl_rng_get().seed == before.seed && sl_rng_get().stream == before.stream);
		CHECK_ALL(wrong, 2.5);
		CHECK_SAME(slp_data(net, "0.weight"), slp_data(other, "0.weight"));
		CHECK_OK(sl_save_params(net, path)); /* of parameters only */
		CHECK_NULL(sl_checkpoint_open(path), SL_EFORMAT, "is not a checkpoint");
		CHECK_MISTAKE(sl_checkpoint_save(path, .net = net, .note = "\xff"), SL_EINVAL, "UTF-8");
		CHECK_MISTAKE(sl_checkpoint_save("x.params", .net = net), SL_EINVAL, "*.safetensors", ".keep");
		CHECK_MISTAKE(sl_checkpoint_save(NULL, .net = net), SL_EINVAL, "NULL");
		CHECK_MISTAKE(sl_checkpoint_save("/nowhere/x.safetensors", .net = net), SL_EIO,
		              "/nowhere/x.safetensors");
	}
	sl_block_free(net);
	sl_block_free(other);
	remove(path);
	slp_end_well();
}

/* A file of another version is not damaged: the message says who wrote it. */
static void check_format(char version)
{
	char path[PATH_MAX], name[] = "starling-checkpoint-?";
	size_t size;
	uint64_t length;
	name[sizeof name - 2] = version;
	slp_scratch_path("run.safetensors", path);
	sl_block *net = small_net(2);
	CHECK_OK(sl_checkpoint_save(path, .net = net));
	char *bytes = slp_read_file(path, &size), *format = memmem(bytes, size, "starling-checkpoint-1", 21);
	CHECK(format != NULL);
	if (format) format[20] = version;
	memcpy(&length, bytes, sizeof length);
	slp_seal_close(bytes + sizeof length, (size_t)length);
	slp_write_scratch("run.safetensors", bytes, size);
	CHECK_NULL(sl_checkpoint_open(path), SL_EUNSUPPORTED, name, sl_version());
	free(bytes);
	sl_block_free(net);
	remove(path);
}

static void test_other_formats(void)
{
	slp_begin_plainly();
	check_format('0');
	check_format('2');
	slp_end_well();
}

/* Each bit and each length that is not as it was written. */
static void test_damage(void)
{
	char path[PATH_MAX];
	size_t size;
	slp_begin_plainly();
	slp_scratch_path("run.safetensors", path);
	sl_block *net = small_net(2);
	CHECK_OK(sl_checkpoint_save(path, .net = net));
	char *bytes = slp_read_file(path, &size);
	int unnoticed = 0;
	for (size_t i = 0; i < size; i++) {
		bytes[i] ^= (char)(1 << i % 8);
		slp_write_scratch("run.safetensors", bytes, size);
		bytes[i] ^= (char)(1 << i % 8);
		unnoticed += sl_checkpoint_open(path) != NULL || sl_error() != SL_EFORMAT;
		sl_error_clear();
	}
	CHECK_SAYING(!unnoticed, "%d of %zu changed bits were not noticed", unnoticed, size);
	for (size_t n = 0; n < size; n += 7) {
		slp_write_scratch("run.safetensors", bytes, n);
		CHECK_NULL(sl_checkpoint_open(path), SL_EFORMAT, path);
	}
	free(bytes);
	sl_block_free(net);
	remove(path);
	slp_end_well();
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

static void save_numbered(const char *folder, sl_block *net, int64_t step, int keep)
{
	CHECK_OK(sl_checkpoint_save(folder, .net = net, .step = &step, .keep = keep));
}

static int64_t load_numbered(const char *folder, sl_block *net)
{
	int64_t step = -1;
	enum sl_status s = sl_checkpoint_load(folder, .net = net, .step = &step);
	return s == SL_OK ? step : -1;
}

static void flip(const char *folder, int64_t number)
{
	char *path = slp_numbered_path(folder, number);
	FILE *f = fopen(path, "r+b");
	CHECK(f && fseek(f, -3, SEEK_END) == 0 && fputc('?', f) == '?' && fclose(f) == 0);
	free(path);
}

static void test_rotation(void)
{
	char folder[PATH_MAX];
	slp_begin_plainly();
	slp_scratch_path("run", folder);
	sl_block *net = small_net(2);
	CHECK(sl_checkpoint_count(folder) == 0);
	CHECK_NULL(sl_checkpoint_open(folder), SL_EIO, folder);
	for (int step = 1; step <= 5; step++) {
		save_numbered(folder, net, step, 3);
		CHECK(sl_checkpoint_count(folder) == (step < 3 ? step : 3));
		CHECK(load_numbered(folder, net) == step);
	}
	flip(folder, 5);
	slp_capture_begin();
	CHECK(load_numbered(folder, net) == 4);
	char *said = slp_capture_end();
	CHECK_SAYING(strstr(said, "checkpoint-000005.safetensors") && strstr(said, "checksum") &&
	                     strstr(said, "checkpoint-000004.safetensors, the checkpoint before it, is used"),
	             "the damaged one is not reported: %s", said);
	free(said);
	flip(folder, 4);
	flip(folder, 3);
	slp_capture_begin();
	CHECK(load_numbered(folder, net) == -1 && sl_error() == SL_EFORMAT);
	sl_error_clear();
	free(slp_capture_end());
	save_numbered(folder, net, 6, 3); /* goes on counting */
	CHECK(load_numbered(folder, net) == 6);
	sl_block_free(net);
	remove_folder(folder);
	slp_end_well();
}

/* Pruning removes what Starling wrote, and nothing else. */
static void test_foreign_files(void)
{
	static const char *const names[] = {"checkpoint-1.safetensors",      "checkpoint-000000.safetensors",
	                                    "checkpoint-000002.safetensors", "checkpoint-000001.safetensors.bak",
	                                    ".checkpoint-000001.part",       ".x.part"};
	char folder[PATH_MAX], path[PATH_MAX + 64];
	slp_begin_plainly();
	slp_scratch_path("run", folder);
	sl_block *net = small_net(2);
	int count = sizeof names / sizeof *names;
	save_numbered(folder, net, 1, 1);
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		FILE *f = fopen(path, "w");
		CHECK(f && fputs("a stranger's", f) >= 0 && fclose(f) == 0);
	}
	for (int step = 3; step < 6; step++) save_numbered(folder, net, step, 1);
	CHECK(load_numbered(folder, net) == 5);
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		CHECK_SAYING(access(path, F_OK) == 0, "%s is gone", names[i]);
	}
	snprintf(path, sizeof path, "%s/checkpoint-000001.safetensors", folder);
	CHECK(access(path, F_OK) != 0);
	snprintf(path, sizeof path, "%s/checkpoint-999999999999999999.safetensors", folder);
	FILE *f = fopen(path, "w");
	CHECK(f && fclose(f) == 0);
	int64_t step = 9;
	CHECK_MISTAKE(sl_checkpoint_save(folder, .net = net, .step = &step, .keep = 1), SL_EIO, "largest number");
	sl_block_free(net);
	remove_folder(folder);
	slp_end_well();
}

/* The disk is full until there are fewer files: older checkpoints go, the last one stays. */
static void test_full_disk(void)
{
	char folder[PATH_MAX];
	slp_begin_plainly();
	slp_scratch_path("run", folder);
	sl_block *net = small_net(2);
	for (int step = 1; step <= 3; step++) save_numbered(folder, net, step, 5);
	io_fail(IO_write, 1, ENOSPC); /* the first try alone */
	save_numbered(folder, net, 4, 5);
	io_fail(IO_write, 0, 0);
	CHECK(sl_checkpoint_count(folder) == 3 && load_numbered(folder, net) == 4);
	sl_block_free(net);
	remove_folder(folder);
	slp_end_well();
}

/* The k-th call of a kind fails while a step later than *step is saved; *step is what is there then.  false: there are
 * not so many calls. */
static bool save_with_fault(const char *folder, sl_block *net, int64_t *step, enum io_call call, int k)
{
	int64_t next = *step + 1;
	io_fail(call, k, EIO);
	enum sl_status s = sl_checkpoint_save(folder, .net = net, .step = &next, .keep = 1);
	bool came = io_failed();
	io_fail(call, 0, 0);
	CHECK_SAYING((s == SL_EIO) == came, "%s %d: %s", io_names[call], k, sl_error_message());
	sl_error_clear();
	int64_t there = load_numbered(folder, net);
	CHECK_SAYING(there == next || (came && there == *step), "%s %d leaves step %lld", io_names[call], k,
	             (long long)there);
	*step = there;
	return came;
}

/* Every system call of a save fails once: a sound checkpoint is there, the old one or the new one, and nothing else is.
 */
static void test_failing_saves(void)
{
	char folder[PATH_MAX];
	slp_begin_plainly();
	slp_scratch_path("run", folder);
	sl_block *net = small_net(200);
	int64_t step = 1;
	save_numbered(folder, net, step, 1);
	for (enum io_call call = 0; call < IO_COUNT; call++)
		for (int k = 1; save_with_fault(folder, net, &step, call, k);) k++;
	sl_block_free(net);
	remove_folder(folder);
	slp_end_well();
}

/* ---- what does not fit ------------------------------------------------------------------------------------------- */

static void test_misfits(void)
{
	char path[PATH_MAX], folder[PATH_MAX];
	struct run a, b;
	begin(1);
	slp_scratch_path("run.safetensors", path);
	slp_scratch_path("", folder);
	CHECK(run_start(&a, (struct run_options){.net = RUN_LENET}, data) && run_steps(&a, 2));
	CHECK_OK(sl_checkpoint_save(path, RUN_STATE(&a)));
	CHECK(run_start(&b, (struct run_options){.net = RUN_RESNET}, data) && run_steps(&b, 2));
	uint32_t before = run_bits(&b);
	CHECK_MISTAKE(sl_checkpoint_load(path, RUN_STATE(&b)), SL_EINVAL, path, "belongs to another run",
	              "0.weight is float32 (4, 1, 3, 3)", "optimiser: adam in the file, sgd here", "test_checkpoint.c");
	CHECK_SAYING(run_bits(&b) == before && b.steps == 2, "a checkpoint that does not fit changes the run");
	run_stop(&b);
	sl_dataset *other = run_data(folder, RUN_SAMPLES, 2), *more = run_data(folder, RUN_SAMPLES + 1, 1);
	CHECK(run_start(&b, (struct run_options){.net = RUN_LENET, .batch = 4}, other));
	CHECK_MISTAKE(sl_checkpoint_load(path, RUN_STATE(&b)), SL_EINVAL, "batch size: 8 in the file, 4 here",
	              "data set: images");
	run_stop(&b);
	CHECK(run_start(&b, (struct run_options){.net = RUN_LENET}, more));
	CHECK_MISTAKE(sl_checkpoint_load(path, RUN_STATE(&b)), SL_EINVAL, "samples: 44 in the file, 45 here");
	CHECK_MISTAKE(sl_checkpoint_load(path, .net = b.net), SL_EINVAL, "there is a trainer in the file",
	              "there is a loader");
	run_stop(&b);
	run_stop(&a);
	sl_dataset_free(other);
	sl_dataset_free(more);
	remove(path);
	end();
}

static const struct slp_test bits[] = {{"modes", test_resumed},     {"moments", test_moments},
                                       {"devices", test_devices},   {"asynchronous", test_asynchronous},
                                       {"shutdown", test_shutdown}, {0}};
static const struct slp_test files[] = {{"checksum", test_checksum},     {"contents", test_contents},
                                        {"damage", test_damage},         {"other formats", test_other_formats},
                                        {"rotation", test_rotation},     {"others' files", test_foreign_files},
                                        {"a full disk", test_full_disk}, {"failing saves", test_failing_saves},
                                        {"misfits", test_misfits},       {0}};

int main(int argc, char **argv)
{
	static const struct slp_suite suites[] = {
	        {.name = "bits", .tests = bits, .start = slp_scratch_make, .stop = slp_scratch_remove},
	        {.name = "files", .tests = files, .start = slp_scratch_make, .stop = slp_scratch_remove},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
