/* The C interface of pinbuddy's pinned-memory allocator. Link with libtorch_pinbuddy.so, which lies
 * beside libtorch.so. Every function may be called from any thread. */
#ifndef PINBUDDY_PINBUDDY_H
#define PINBUDDY_PINBUDDY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 1 if requests for pinned memory go to pinbuddy; 0 if BUDDY_DISABLE=1 leaves them to PyTorch, in a child
 * of a fork, and once the engine has met a defect of its own and retired. Does not look for a GPU. */
int pinbuddy_enabled(void);

/* Starts pinning the blocks that BUDDY_BLOCK_COUNT asks for, and those that empty_cache unpinned, in a
 * thread of its own; unless `wait` is 0, returns when that has ended. Makes a context only where there is one GPU:
 * with several, that thread waits until the process has one, and the call does not. 1, or 0 where the engine is off
 * or there is no GPU. */
int pinbuddy_warm_up(int wait);

/* Says that CUDA is initialised in this process: once it has a context on a device, the memory that the plan of BUDDY_PLAN
 * asks for is pinned, in a thread of its own, unless BUDDY_WARMUP=off. Python does this by itself, when torch.cuda is
 * initialised. Without it the first request pins. */
void pinbuddy_cuda_is_up(void);

/* Unpins what is cached and idle, as torch.accelerator.empty_host_cache() does. 1, or 0 where the engine
 * is off. */
int pinbuddy_empty_cache(void);

/* Records requests for pinned memory to the file `name`, in which {rank} and {pid} are replaced. Copies why it does
 * not, or an empty text, into `buffer`, as pinbuddy_stats_json does. One trace is recorded at a time. */
size_t pinbuddy_trace_start(const char* name, char* buffer, size_t capacity);

/* What BUDDY_DEVICE_PLAN and BUDDY_DEVICE_TRACE do, for these files, of which each may be null. Before CUDA is initialised,
 * and once. Copies why it does not, or an empty text, into `buffer`, as pinbuddy_stats_json does. */
size_t pinbuddy_device_enable(const char* plan, const char* trace, char* buffer, size_t capacity);

/* Pins the memory of a storage of PyTorch's where it is. Called with `pin` {0, 1} at first, then as it is, until its second number
 * is 0. `storage`: the address of a c10::StorageImpl. `asked`: 1, PyTorch's is_shared() is true; 2, its is_pinned() is; and 4 for
 * each process that pins the same memory. With 0 for `asked` one pin is taken back, made or not: that with the first number, or
 * one of this storage if it is 0. Copies why it does not, or an empty text, into `buffer`, as pinbuddy_stats_json does. */
size_t pinbuddy_pin(size_t storage, size_t asked, uint64_t pin[2], char* buffer, size_t capacity);

/* Ends the trace, whether pinbuddy_trace_start or BUDDY_TRACE began it. 1 if there was one and it is written. */
int pinbuddy_trace_stop(void);

/* Says that an iteration of the program is over: a mark in the trace, and to plans where the program is. */
void pinbuddy_iteration(void);

/* 1 if the library was built with assertions, which cost time; no released wheel is. */
int pinbuddy_debug_build(void);

/* The fork's version, for instance "2.15.0+cu132.pinbuddy.0.1.0"; never freed. */
const char* pinbuddy_version(void);

/* Copies the engine's counters and segments (sizes in bytes) as JSON into `buffer`, cut to
 * `capacity` with a terminating zero. Returns the whole length without that zero, so that a result
 * of `capacity` or more asks for a larger buffer. */
size_t pinbuddy_stats_json(char* buffer, size_t capacity);

/* Copies each segment with its blocks, in the same way. Scans all pinned memory: for people, not for
 * every step. */
size_t pinbuddy_segments_json(char* buffer, size_t capacity);

/* Copies the settings in use, where each came from, and what is wrong with what was set, in the same
 * way. */
size_t pinbuddy_config_json(char* buffer, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
