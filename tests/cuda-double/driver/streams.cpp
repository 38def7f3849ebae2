// Streams, events, capture and graphs.
//
// A stream is a queue. Eager streams run work when it is queued; lazy ones only when somebody waits for it or polls, so that a wait that is
// missing shows. Work that cannot end yet (a collective whose other ranks are not there) stays at the head of its queue. A GPU would go on
// by itself, so a thread takes up what has lain for a tenth of a second.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "driver.h"

using Clock = std::chrono::steady_clock;

static Stream default_stream;
static std::map<Stream*, std::unique_ptr<Stream>> streams;

struct Event {
    Stream* stream = nullptr;
    uint64_t target = 0;
    Graph* capture = nullptr;
    bool recorded = false;
    Clock::time_point when;
};
static std::map<Event*, std::unique_ptr<Event>> events;
static std::map<Graph*, std::shared_ptr<Graph>> graphs;       // CUgraph
static std::map<Graph*, std::shared_ptr<Graph>> executables;  // CUgraphExec; the same contents

static bool lazy() {
    static bool value = environment_is("CUDA_EMU_STREAMS", "lazy");
    return value;
}

Stream* find_stream(void* handle) {
    // 0, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD
    if ((uintptr_t)handle <= 2) return &default_stream;
    auto found = streams.find((Stream*)handle);
    return found != streams.end() && found->second->live ? found->first : nullptr;
}

static Event* find_event(void* handle) {
    auto found = events.find((Event*)handle);
    return found == events.end() ? nullptr : found->first;
}

// Runs the work at the head of the queue, if it can. After CUDA_EMU_STUCK pieces of work (0: never) no stream gets on, as on a GPU that hangs.
static int step(Stream* stream) {
    static long stuck = setting("CUDA_EMU_STUCK", 0), done = 0;
    if (stuck && done >= stuck) return kPending;
    done++;
    Queued& head = stream->queue.front();
    int result = head.work(&head.progress);
    if (result == kPending) return kPending;
    if (result && !context_error) context_error = result;
    stream->queue.pop_front();
    stream->finished++;
    return context_error;
}

int poll(Stream* stream, uint64_t target) {
    while (stream->finished < target && !stream->queue.empty()) {
        if (int result = step(stream)) return result == kPending ? kNotReady : result;
    }
    return context_error;
}

int wait_for(Stream* stream, uint64_t target, Lock& lock) {
    static long patience = setting("CUDA_EMU_HANG", 120);
    auto begun = Clock::now();
    uint64_t before = stream->finished;
    int result;
    while ((result = poll(stream, target)) == kNotReady) {
        if (stream->finished != before) {
            before = stream->finished;
            begun = Clock::now();
        }
        if (Clock::now() - begun > std::chrono::seconds(patience)) {
            emuSay("a stream waited for %ld s (CUDA_EMU_HANG) without an end: on a GPU this hangs", patience);
            return context_error = kLaunchTimeout;
        }
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(20));
        lock.lock();
    }
    if (!canaries_hold() && !context_error) result = context_error = kLaunchFailed;
    return result;
}

int wait_for_all(Lock& lock) {
    std::vector<Stream*> all = {&default_stream};
    for (auto& stream : streams) all.push_back(stream.first);
    for (Stream* stream : all) {
        if (int result = wait_for(stream, stream->pushed, lock)) return result;
    }
    return context_error;
}

static void take_up_old_work() {
    for (;;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        Lock lock(driver_mutex);
        auto old = Clock::now() - std::chrono::milliseconds(100);
        auto look = [&](Stream* stream) {
            // One piece at a time: others may want the lock.
            if (!context_error && !stream->queue.empty() && stream->queue.front().since < old) step(stream);
        };
        look(&default_stream);
        for (auto& stream : streams) look(stream.first);
    }
}

int push(Stream* stream, Work work) {
    if (context_error) return context_error;
    if (stream->capture) {
        stream->capture->work.push_back(std::move(work));
        auto& unjoined = stream->capture->unjoined;
        if (stream != stream->capture->origin && std::find(unjoined.begin(), unjoined.end(), stream) == unjoined.end())
            unjoined.push_back(stream);
        return kSuccess;
    }
    static std::once_flag once;
    std::call_once(once, [] { std::thread(take_up_old_work).detach(); });
    stream->queue.push_back({std::move(work), {}, Clock::now()});
    stream->pushed++;
    if (lazy()) return kSuccess;
    int result = poll(stream, stream->pushed);
    return result == kNotReady ? kSuccess : result;
}

EXPORT int emuEnqueue(void* handle, int (*work)(void*, EmuProgress*), void* job, void (*drop)(void*)) {
    std::shared_ptr<void> owner(job, drop);
    ENTER();
    Stream* stream = find_stream(handle);
    if (!stream) return kInvalidHandle;
    return push(stream, [=](EmuProgress* progress) { return work(owner.get(), progress); });
}

static Graph* capture_under_way() {
    for (auto& stream : streams) {
        Graph* capture = stream.first->capture;
        // Global: whoever calls; thread-local: the thread that began it; relaxed: nobody.
        if (capture && (capture->mode == 0 || (capture->mode == 1 && capture->thread == std::this_thread::get_id()))) return capture;
    }
    return nullptr;
}

int unsafe_in_capture(const char* call) {
    Graph* capture = capture_under_way();
    if (!capture) return kSuccess;
    capture->broken = true;
    emuSay("%s during a capture, which breaks it", call);
    return kCaptureUnsupported;
}

static int captured(Stream* stream, const char* call) {
    if (!stream->capture) return kSuccess;
    stream->capture->broken = true;
    emuSay("%s of a stream that is being captured, which breaks the capture", call);
    return kCaptureUnsupported;
}

// ---- streams

EXPORT int emuCapturing(void* handle) {
    Lock lock(driver_mutex);
    Stream* stream = find_stream(handle);
    return stream && stream->capture;
}

EXPORT void emuRecordUse(void* handle, const void* what) {
    Lock lock(driver_mutex);
    Stream* stream = find_stream(handle);
    if (stream && stream->capture) stream->capture->uses.push_back(what);
}

EXPORT int emuRecorded(const void* what) {
    Lock lock(driver_mutex);
    auto uses = [what](auto& graph) { return std::count(graph.first->uses.begin(), graph.first->uses.end(), what) > 0; };
    return std::any_of(graphs.begin(), graphs.end(), uses) || std::any_of(executables.begin(), executables.end(), uses);
}

EXPORT int cuStreamCreate(void** handle, unsigned flags) {
    ENTER();
    if (flags > 1) return kInvalidValue;
    auto stream = std::make_unique<Stream>();
    *handle = stream.get();
    streams[stream.get()] = std::move(stream);
    return kSuccess;
}
EXPORT int cuStreamCreateWithPriority(void** handle, unsigned flags, int) { return cuStreamCreate(handle, flags); }

// The work goes on, as on a GPU. The object stays: an event may still name it.
EXPORT int cuStreamDestroy_v2(void* handle) {
    Lock lock(driver_mutex);
    Stream* stream = find_stream(handle);
    if (!stream || stream == &default_stream) return kInvalidHandle;
    if (int error = captured(stream, "cuStreamDestroy")) return error;
    wait_for(stream, stream->pushed, lock);
    stream->live = false;
    return kSuccess;
}

EXPORT int cuStreamSynchronize(void* handle) {
    ENTER();
    Stream* stream = find_stream(handle);
    if (!stream) return kInvalidHandle;
    if (int error = captured(stream, "cuStreamSynchronize")) return error;
    return wait_for(stream, stream->pushed, lock);
}

// Runs one piece of work: who polls waits, and a lazy stream must come to its end.
EXPORT int cuStreamQuery(void* handle) {
    ENTER();
    Stream* stream = find_stream(handle);
    if (!stream) return kInvalidHandle;
    if (int error = captured(stream, "cuStreamQuery")) return error;
    if (stream->queue.empty()) return context_error;
    int result = poll(stream, stream->finished + 1);
    if (result) return result;
    return stream->queue.empty() ? kSuccess : kNotReady;
}

EXPORT int cuCtxSynchronize() {
    ENTER();
    if (int error = unsafe_in_capture("cuCtxSynchronize")) return error;
    return wait_for_all(lock);
}

EXPORT int cuLaunchHostFunc(void* handle, void (*function)(void*), void* argument) {
    ENTER();
    Stream* stream = find_stream(handle);
    if (!stream) return kInvalidHandle;
    return push(stream, [=](EmuProgress*) {
        in_host_function = true;
        function(argument);
        in_host_function = false;
        return kDone;
    });
}

// ---- events

EXPORT int cuEventCreate(void** handle, unsigned) {
    ENTER();
    auto event = std::make_unique<Event>();
    *handle = event.get();
    events[event.get()] = std::move(event);
    return kSuccess;
}

EXPORT int cuEventDestroy_v2(void* handle) {
    Lock lock(driver_mutex);
    return events.erase((Event*)handle) ? kSuccess : kInvalidHandle;
}

EXPORT int cuEventRecord(void* event_handle, void* stream_handle) {
    ENTER();
    Event* event = find_event(event_handle);
    Stream* stream = find_stream(stream_handle);
    if (!event || !stream) return kInvalidHandle;
    event->recorded = true;
    event->stream = stream;
    event->capture = stream->capture;
    if (stream->capture) return kSuccess;
    // The clock is read when the stream comes here; an event destroyed before that is nobody's any more.
    int result = push(stream, [event](EmuProgress*) {
        if (find_event(event)) event->when = Clock::now();
        return kDone;
    });
    event->target = stream->pushed;
    return result;
}
EXPORT int cuEventRecordWithFlags(void* event, void* stream, unsigned) { return cuEventRecord(event, stream); }

EXPORT int cuStreamWaitEvent(void* stream_handle, void* event_handle, unsigned) {
    ENTER();
    Event* event = find_event(event_handle);
    Stream* stream = find_stream(stream_handle);
    if (!event || !stream) return kInvalidHandle;
    if (!event->recorded) return kSuccess;
    if (event->capture) {
        Graph* capture = event->capture;
        if (stream->capture && stream->capture != capture) return kCaptureIsolation;
        if (!stream->capture) {
            stream->capture = capture;
            capture->members.push_back(stream);
        }
        // Work is replayed in the order of its capture, so nothing else is to be kept. A fork must be joined again before the end.
        auto& unjoined = capture->unjoined;
        if (stream == capture->origin)
            unjoined.erase(std::remove(unjoined.begin(), unjoined.end(), event->stream), unjoined.end());
        else if (std::find(unjoined.begin(), unjoined.end(), stream) == unjoined.end())
            unjoined.push_back(stream);
        return kSuccess;
    }
    if (stream->capture) {
        stream->capture->broken = true;
        emuSay("a stream that is being captured waits for an event recorded outside the capture");
        return kCaptureIsolation;
    }
    Stream* other = event->stream;
    uint64_t target = event->target;
    if (other == stream) return kSuccess;
    return push(stream, [other, target](EmuProgress*) {
        int result = poll(other, target);
        return result == kNotReady ? kPending : result;
    });
}

EXPORT int cuEventQuery(void* handle) {
    ENTER();
    Event* event = find_event(handle);
    if (!event) return kInvalidHandle;
    if (!event->recorded || event->stream->finished >= event->target) return kSuccess;
    int result = poll(event->stream, event->stream->finished + 1);
    return result ? result : event->stream->finished >= event->target ? kSuccess : kNotReady;
}

EXPORT int cuEventSynchronize(void* handle) {
    ENTER();
    Event* event = find_event(handle);
    if (!event) return kInvalidHandle;
    return event->recorded ? wait_for(event->stream, event->target, lock) : (int)kSuccess;
}

EXPORT int cuEventElapsedTime(float* milliseconds, void* from_handle, void* to_handle) {
    Lock lock(driver_mutex);
    Event *from = find_event(from_handle), *to = find_event(to_handle);
    if (!from || !to || !from->recorded || !to->recorded) return kInvalidHandle;
    if (from->stream->finished < from->target || to->stream->finished < to->target) return kNotReady;
    *milliseconds = std::chrono::duration<float, std::milli>(to->when - from->when).count();
    return kSuccess;
}
EXPORT int cuEventElapsedTime_v2(float* milliseconds, void* from, void* to) { return cuEventElapsedTime(milliseconds, from, to); }

// ---- capture and graphs

EXPORT int cuStreamBeginCapture_v2(void* handle, int mode) {
    ENTER();
    Stream* stream = find_stream(handle);
    if (!stream) return kInvalidHandle;
    if (stream == &default_stream) return kCaptureUnsupported;
    if (stream->capture || mode < 0 || mode > 2) return kInvalidValue;
    auto graph = std::make_shared<Graph>();
    graph->origin = stream;
    graph->members = {stream};
    graph->mode = mode;
    graph->thread = std::this_thread::get_id();
    stream->capture = graph.get();
    graphs[graph.get()] = std::move(graph);
    return kSuccess;
}

EXPORT int cuStreamIsCapturing(void* handle, int* status) {
    Lock lock(driver_mutex);
    Stream* stream = find_stream(handle);
    if (!stream) return kInvalidHandle;
    *status = !stream->capture ? 0 : stream->capture->broken ? 2 : 1;
    return kSuccess;
}

EXPORT int cuStreamEndCapture(void* handle, void** result) {
    Lock lock(driver_mutex);
    *result = nullptr;
    Stream* stream = find_stream(handle);
    if (!stream || !stream->capture) return kInvalidValue;
    Graph* graph = stream->capture;
    if (graph->origin != stream) return kCaptureUnmatched;
    if (graph->mode != 2 && graph->thread != std::this_thread::get_id()) return kCaptureWrongThread;
    for (Stream* member : graph->members) member->capture = nullptr;
    int error = graph->broken ? kCaptureInvalidated : !graph->unjoined.empty() ? kCaptureUnjoined : kSuccess;
    if (error)
        graphs.erase(graph);
    else
        *result = graph;
    return error;
}

EXPORT int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
    ENTER();
    auto found = graphs.find((Graph*)graph);
    if (found == graphs.end()) return kInvalidValue;
    auto copy = std::make_shared<Graph>();
    copy->work = found->second->work;
    copy->uses = found->second->uses;
    *executable = copy.get();
    executables[copy.get()] = std::move(copy);
    return kSuccess;
}

EXPORT int cuGraphUpload(void* executable, void*) {
    Lock lock(driver_mutex);
    return executables.count((Graph*)executable) ? kSuccess : kInvalidValue;
}

EXPORT int cuGraphLaunch(void* executable, void* handle) {
    ENTER();
    auto found = executables.find((Graph*)executable);
    Stream* stream = find_stream(handle);
    if (found == executables.end() || !stream) return kInvalidValue;
    if (stream->capture) {
        emuSay("cuGraphLaunch into a capture (a child graph) is not supported");
        return kNotSupported;
    }
    for (auto& work : found->second->work) {
        if (int error = push(stream, work)) return error;
    }
    return kSuccess;
}

// Only the number: the nodes themselves are no objects here.
EXPORT int cuGraphGetNodes(void* graph, void** nodes, size_t* count) {
    Lock lock(driver_mutex);
    auto found = graphs.find((Graph*)graph);
    if (found == graphs.end()) return kInvalidValue;
    if (nodes) {
        emuSay("cuGraphGetNodes gives the number of nodes, not the nodes");
        return kNotSupported;
    }
    *count = found->second->work.size();
    return kSuccess;
}

EXPORT int cuGraphExecDestroy(void* executable) {
    Lock lock(driver_mutex);
    return executables.erase((Graph*)executable) ? kSuccess : kInvalidValue;
}

EXPORT int cuGraphDestroy(void* graph) {
    Lock lock(driver_mutex);
    return graphs.erase((Graph*)graph) ? kSuccess : kInvalidValue;
}
