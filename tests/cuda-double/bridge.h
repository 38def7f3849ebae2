// Functions that libcuda's stand-in offers to the other three: its streams and its memory.
#pragma once
#include <cstddef>
#include <cstdint>

constexpr int kDone = 0;
constexpr int kPending = -1;

// Words that a piece of queued work keeps from one poll to the next; all 0 at the first poll, also of every replay of a graph.
struct EmuProgress {
    uint64_t word[4];
};

extern "C" {
// Queues work on a stream (0: the default stream), or adds it to the graph the stream is captured into. `poll` returns kDone, kPending to
// be called again later, or a CUDA error that ends the stream. `drop` frees `job`, also where this call fails. Returns a CUDA error or 0.
int emuEnqueue(void* stream, int (*poll)(void* job, EmuProgress* progress), void* job, void (*drop)(void* job));
// Whether a stream is being captured.
int emuCapturing(void* stream);
// Notes that the graph into which a stream is being captured uses something.
void emuRecordUse(void* stream, const void* what);
// Whether a graph that is not destroyed yet uses it.
int emuRecorded(const void* what);
// Whether all of `bytes` bytes at `address` lie in one live device allocation.
int emuInside(unsigned long long address, size_t bytes);
// Whether the bytes lie in one live allocation, for work that a stream runs: the lock is taken already.
int emuInsideLocked(unsigned long long address, size_t bytes);
// Notes that work of a stream wrote bytes of device memory.
void emuWritten(unsigned long long address, size_t bytes);
// Whether the calling thread has a current context.
int emuHasContext();
// One line on stderr, marked as the double's.
void emuSay(const char* format, ...) __attribute__((format(printf, 1, 2)));
}
