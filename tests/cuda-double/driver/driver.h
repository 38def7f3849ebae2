// Inside libcuda's stand-in: what its files share. Everything is under one lock.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "../bridge.h"
#include "../shim/interface.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

typedef unsigned long long Address;

// CUresult, the part that is used.
enum Result : int {
    kSuccess = 0,
    kInvalidValue = 1,
    kOutOfMemory = 2,
    kNotInitialized = 3,
    kInvalidDevice = 101,
    kInvalidImage = 200,
    kInvalidContext = 201,
    kInvalidHandle = 400,
    kNotFound = 500,
    kNotReady = 600,
    kLaunchTimeout = 702,
    kLaunchFailed = 719,
    kNotPermitted = 800,
    kNotSupported = 801,
    kCaptureUnsupported = 900,
    kCaptureInvalidated = 901,
    kCaptureUnmatched = 903,
    kCaptureUnjoined = 904,
    kCaptureIsolation = 905,
    kCaptureWrongThread = 908,
};

// A piece of a stream's work: called until it no longer answers kPending.
using Work = std::function<int(EmuProgress*)>;

struct Stream;

// A stream's work as it is captured, then a graph.
struct Graph {
    std::vector<Work> work;
    std::vector<const void*> uses;  // what work of other libraries belongs to: communicators
    Stream* origin = nullptr;
    std::vector<Stream*> members;   // streams captured into it
    std::vector<Stream*> unjoined;  // members that the origin has not waited for since their last work
    int mode = 0;
    std::thread::id thread;
    bool broken = false;
};

struct Queued {
    Work work;
    EmuProgress progress;
    std::chrono::steady_clock::time_point since;
};

struct Stream {
    std::deque<Queued> queue;
    uint64_t pushed = 0, finished = 0;
    Graph* capture = nullptr;
    bool live = true;
};

extern std::mutex driver_mutex;
using Lock = std::unique_lock<std::mutex>;

// Set once a kernel has failed: as on a GPU, every later call answers with it.
extern int context_error;

// ---- device.cpp
long setting(const char* variable, long otherwise);
bool environment_is(const char* variable, const char* value);
// A host function runs under the lock and must not call CUDA.
extern thread_local bool in_host_function;
int refuse_host_function();
// 0, or the error of a call without cuInit or a current context, or after a kernel failed.
int usable();
#define ENTER()                                          \
    if (in_host_function) return refuse_host_function(); \
    Lock lock(driver_mutex);                             \
    if (int error = usable()) return error

// ---- streams.cpp
// The stream of a handle: null where it names none.
Stream* find_stream(void* handle);
int push(Stream* stream, Work work);
// Waits for everything of the stream up to `target`; the lock is open while it waits.
int wait_for(Stream* stream, uint64_t target, Lock& lock);
int wait_for_all(Lock& lock);
// Runs what can run now, for a poll.
int poll(Stream* stream, uint64_t target);
// Marks every capture that forbids such a call as broken; an error where there was one.
int unsafe_in_capture(const char* call);

// ---- memory.cpp
bool inside(Address address, size_t bytes);
// An allocation, or pinned memory, with a byte for each of its own: 1 where something was written. Null where nobody keeps count.
struct Memory {
    Address from = 0, to = 0;
    unsigned char* written = nullptr;
};
bool find_memory(Address address, Memory& memory);
bool pinned(const void* address, size_t bytes);
// Says whose guard page an address lies in.
void describe_address(Address address);
// False, with a message, where somebody wrote beside an allocation.
bool canaries_hold();
// Lets a fault on this thread be told as a kernel's.
void watch_faults();

// ---- modules.cpp
extern const char* running_kernel;
