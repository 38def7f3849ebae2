// libnccl's stand-in: collectives between processes of one host, through shared memory named by the unique id.
//
// Every collective is work on a stream that is polled, never a wait: a rank that does not come leaves the others pending, as on a GPU,
// until somebody aborts the communicator. Unlike on a GPU, ranks that call different collectives, or lose a process, are told so as an
// asynchronous error. Sums go over the ranks in order.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bridge.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

enum Result {
    kSuccess = 0,
    kUnhandledCuda = 1,
    kSystemError = 2,
    kInternalError = 3,
    kInvalidArgument = 4,
    kInvalidUsage = 5,
    kRemoteError = 6
};
enum Operation { kAllReduce, kBroadcast, kAllGather, kReduceScatter, kReduce };

constexpr size_t kChunk = 1 << 20;
constexpr int kMostRanks = 16;

// Kind and size of a collective: the same on every rank, or an error.
struct Tag {
    int operation, type, reduction, root;
    size_t count;
    // A recorded collective's place among those that its communicator recorded, from 1 on; else 0. NCCL wants that ranks replay what they recorded
    // together.
    uint64_t recording = 0;
    bool operator==(const Tag& other) const {
        return operation == other.operation && type == other.type && reduction == other.reduction && root == other.root &&
               count == other.count && recording == other.recording;
    }
};

// One rank's part of the shared memory. The counters only grow.
struct Rank {
    std::atomic<int> joined, process;
    std::atomic<uint64_t> tagged;   // collectives begun
    std::atomic<uint64_t> written;  // chunks put into `chunk`
    std::atomic<uint64_t> read;     // chunks of the others that it no longer needs
    // In turn: a rank is at most one collective ahead of another.
    Tag tags[2];
    alignas(64) char chunk[kChunk];
};
struct Shared {
    std::atomic<int> error;
    Rank ranks[kMostRanks];
};

struct Communicator {
    Shared* shared;
    int rank, size;
    uint64_t collectives = 0, chunks = 0;
    const void* active = nullptr;  // the collective under way; others of this communicator wait for it
    bool aborted = false;
    uint64_t recordings = 0;  // collectives that graphs have recorded
};

struct Id {
    char name[128];
};

static thread_local std::string last_error;

static int refuse(int result, const std::string& why) {
    last_error = why;
    emuSay("NCCL: %s", why.c_str());
    return result;
}

// Whether CUDA_EMU_NCCL_REFUSES, `RANK:CALLS`, has this call fail: on that rank alone, and after so many that did not.
static bool refused(int rank) {
    static const char* setting = getenv("CUDA_EMU_NCCL_REFUSES");
    static std::atomic<int> calls;
    int which, good;
    return setting && sscanf(setting, "%d:%d", &which, &good) == 2 && rank == which && calls++ >= good;
}

static size_t size_of(int type) {
    static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8};
    return type >= 0 && type < 9 ? sizes[type] : 0;
}

template <class T>
static void combine(T* sum, const T* values, size_t count, int reduction) {
    for (size_t i = 0; i < count; i++) {
        switch (reduction) {
            case 1:
                sum[i] *= values[i];
                break;
            case 2:
                sum[i] = values[i] > sum[i] ? values[i] : sum[i];
                break;
            case 3:
                sum[i] = values[i] < sum[i] ? values[i] : sum[i];
                break;
            default:
                sum[i] += values[i];
        }
    }
}

static void combine(void* sum, const void* values, size_t count, int type, int reduction) {
    switch (type) {
        case 0:
            combine((int8_t*)sum, (const int8_t*)values, count, reduction);
            break;
        case 1:
            combine((uint8_t*)sum, (const uint8_t*)values, count, reduction);
            break;
        case 2:
            combine((int32_t*)sum, (const int32_t*)values, count, reduction);
            break;
        case 3:
            combine((uint32_t*)sum, (const uint32_t*)values, count, reduction);
            break;
        case 4:
            combine((int64_t*)sum, (const int64_t*)values, count, reduction);
            break;
        case 5:
            combine((uint64_t*)sum, (const uint64_t*)values, count, reduction);
            break;
        case 7:
            combine((float*)sum, (const float*)values, count, reduction);
            break;
        case 8:
            combine((double*)sum, (const double*)values, count, reduction);
            break;
    }
}

static bool all_reached(const Communicator* comm, std::atomic<uint64_t> Rank::*counter, uint64_t value) {
    for (int rank = 0; rank < comm->size; rank++) {
        if ((comm->shared->ranks[rank].*counter).load() < value) return false;
    }
    return true;
}

struct Job {
    Communicator* comm;
    Tag tag;
    const char* send;
    char* receive;
    void* stream;

    size_t send_bytes() const { return tag.count * size_of(tag.type) * (tag.operation == kReduceScatter ? comm->size : 1); }
    size_t receive_bytes() const { return tag.count * size_of(tag.type) * (tag.operation == kAllGather ? comm->size : 1); }
    bool sends() const { return tag.operation != kBroadcast || comm->rank == tag.root; }
    bool receives() const { return tag.operation != kReduce || comm->rank == tag.root; }
};

static bool tags_agree(const Job& job) {
    Shared* shared = job.comm->shared;
    for (int rank = 0; rank < job.comm->size; rank++) {
        const Tag& other = shared->ranks[rank].tags[job.comm->collectives % 2];
        if (other == job.tag) continue;
        emuSay(
            "NCCL: rank %d calls operation %d on %zu elements of type %d, recording %llu, where rank %d calls operation %d on %zu elements of "
            "type %d, recording %llu; on a GPU this hangs or gives wrong numbers",
            job.comm->rank, job.tag.operation, job.tag.count, job.tag.type, (unsigned long long)job.tag.recording, rank, other.operation,
            other.count, other.type, (unsigned long long)other.recording);
        shared->error = kInvalidUsage;
        return false;
    }
    return true;
}

static void look_for_the_dead(Communicator* comm) {
    for (int rank = 0; rank < comm->size; rank++) {
        if (kill(comm->shared->ranks[rank].process, 0) == 0 || errno != ESRCH) continue;
        if (!comm->shared->error.exchange(kRemoteError)) emuSay("NCCL: rank %d found rank %d's process gone", comm->rank, rank);
    }
}

// Takes what the others have put down of the chunk that begins `done` elements into the message.
static void take(const Job& job, size_t done, size_t count) {
    Shared* shared = job.comm->shared;
    size_t size = size_of(job.tag.type), at = done * size, bytes = count * size;
    if (job.tag.operation == kBroadcast) {
        memcpy(job.receive + at, shared->ranks[job.tag.root].chunk, bytes);
    } else if (job.tag.operation == kAllGather) {
        for (int rank = 0; rank < job.comm->size; rank++)
            memcpy(job.receive + rank * job.tag.count * size + at, shared->ranks[rank].chunk, bytes);
    } else {
        std::vector<char> sum(shared->ranks[0].chunk, shared->ranks[0].chunk + bytes);
        for (int rank = 1; rank < job.comm->size; rank++)
            combine(sum.data(), shared->ranks[rank].chunk, count, job.tag.type, job.tag.reduction);
        if (job.tag.operation == kReduceScatter) {
            for (size_t i = 0; i < count; i++) {
                size_t element = done + i;
                if (element / job.tag.count == (size_t)job.comm->rank)
                    memcpy(job.receive + element % job.tag.count * size, &sum[i * size], size);
            }
        } else if (job.receives()) {
            memcpy(job.receive + at, sum.data(), bytes);
        }
    }
}

enum Phase { kBegin, kCompare, kWrite, kRead };

static int advance(void* pointer, EmuProgress* progress) {
    Job& job = *(Job*)pointer;
    Communicator* comm = job.comm;
    if (comm->aborted) return kDone;  // what it would have written is lost
    if (comm->active && comm->active != progress) return kPending;
    Rank& mine = comm->shared->ranks[comm->rank];
    uint64_t &phase = progress->word[0], &done = progress->word[1];
    size_t size = size_of(job.tag.type), total = job.tag.count * (job.tag.operation == kReduceScatter ? comm->size : 1);
    if (phase == kBegin) {
        bool valid = (!job.sends() || emuInsideLocked((unsigned long long)job.send, job.send_bytes())) &&
                     (!job.receives() || emuInsideLocked((unsigned long long)job.receive, job.receive_bytes()));
        if (!valid) {
            emuSay("NCCL: a collective on memory that has been freed");
            return 719;
        }
        comm->active = progress;
        mine.tags[++comm->collectives % 2] = job.tag;
        mine.tagged = comm->collectives;
        phase = kCompare;
        static const long good = getenv("CUDA_EMU_NCCL_BREAKS") ? atol(getenv("CUDA_EMU_NCCL_BREAKS")) : 0;
        if (good && comm->collectives > (uint64_t)good) comm->shared->error = kRemoteError;
    }
    for (;;) {
        if (comm->shared->error) return kPending;
        if (phase == kCompare) {
            if (!all_reached(comm, &Rank::tagged, comm->collectives)) break;
            if (!tags_agree(job)) return kPending;
            phase = kWrite;
        }
        if (done == total) {
            if (job.receives()) emuWritten((unsigned long long)job.receive, job.receive_bytes());
            comm->active = nullptr;
            return kDone;
        }
        size_t count = std::min(total - done, kChunk / size);
        if (phase == kWrite) {
            if (!all_reached(comm, &Rank::read, comm->chunks)) break;
            if (job.sends()) memcpy(mine.chunk, job.send + done * size, count * size);
            mine.written = comm->chunks + 1;
            phase = kRead;
        }
        if (!all_reached(comm, &Rank::written, comm->chunks + 1)) break;
        take(job, done, count);
        mine.read = ++comm->chunks;
        done += count;
        phase = kWrite;
    }
    if (++progress->word[2] % 1024 == 0) look_for_the_dead(comm);
    return kPending;
}

// ---- groups: collected, then queued at the end of the outermost

static thread_local int group_depth;
static thread_local std::vector<Job> grouped;

static int enqueue(Job job) {
    if (emuCapturing(job.stream)) {
        job.tag.recording = ++job.comm->recordings;
        emuRecordUse(job.stream, job.comm);
    }
    int error = emuEnqueue(job.stream, advance, new Job(job), [](void* pointer) { delete (Job*)pointer; });
    return error ? refuse(kUnhandledCuda, "CUDA error " + std::to_string(error) + " as a collective was queued") : (int)kSuccess;
}

static int start(const Job& job) {
    if (!job.comm) return refuse(kInvalidArgument, "no communicator");
    if (job.comm->aborted) return refuse(kInvalidUsage, "the communicator is aborted");
    if (job.comm->shared->error) return refuse(job.comm->shared->error, "the communicator has failed");
    if (refused(job.comm->rank)) return refuse(kSystemError, "a collective fails on one rank, as CUDA_EMU_NCCL_REFUSES asks");
    if (!size_of(job.tag.type) || job.tag.type == 6)
        return refuse(kInvalidArgument, "data type " + std::to_string(job.tag.type) + " is not supported");
    if (job.tag.reduction < 0 || job.tag.reduction > 3)
        return refuse(kInvalidArgument, "reduction " + std::to_string(job.tag.reduction) + " is not supported");
    if (job.tag.root < 0 || job.tag.root >= job.comm->size) return refuse(kInvalidArgument, "no rank has the root's number");
    if (job.sends() && !emuInside((unsigned long long)job.send, job.send_bytes()))
        return refuse(kInvalidArgument, "the send buffer is not all in one allocation");
    if (job.receives() && !emuInside((unsigned long long)job.receive, job.receive_bytes())) {
        return refuse(kInvalidArgument, "the receive buffer is not all in one allocation");
    }
    // NCCL would then register memory of a pool, as all of the product's is: the effect of that is not known. And it might connect the ranks, for
    // which each waits for the others.
    for (const char* name : {"NCCL_GRAPH_REGISTER", "NCCL_RUNTIME_CONNECT"}) {
        const char* value = getenv(name);
        if (emuCapturing(job.stream) && !(value && !strcmp(value, "0")))
            return refuse(kInvalidUsage, std::string("a recorded collective would register memory or connect ranks (") + name + " is not 0)");
    }
    if (group_depth == 0) return enqueue(job);
    grouped.push_back(job);
    return kSuccess;
}

EXPORT int ncclGroupStart() {
    group_depth++;
    return kSuccess;
}
EXPORT int ncclGroupEnd() {
    if (group_depth == 0) return refuse(kInvalidUsage, "ncclGroupEnd without ncclGroupStart");
    if (--group_depth > 0) return kSuccess;
    std::vector<Job> jobs;
    jobs.swap(grouped);
    for (auto& job : jobs) {
        if (int error = enqueue(job)) return error;
    }
    return kSuccess;
}

// ---- communicators

EXPORT int ncclGetVersion(int* version) {
    *version = (int)(getenv("CUDA_EMU_NCCL") ? atol(getenv("CUDA_EMU_NCCL")) : 22604);
    return kSuccess;
}
EXPORT const char* ncclGetLastError(void*) { return last_error.c_str(); }
EXPORT const char* ncclGetErrorString(int result) {
    static const char* texts[] = {"no error",
                                  "unhandled cuda error",
                                  "unhandled system error",
                                  "internal error",
                                  "invalid argument",
                                  "invalid usage",
                                  "remote process exited or there was a network error",
                                  "NCCL operation in progress"};
    return result >= 0 && result < 8 ? texts[result] : "unknown result code";
}

EXPORT int ncclGetUniqueId(Id* id) {
    memset(id, 0, sizeof *id);
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(id->name, sizeof id->name, "/cuda-double-nccl-%d-%lx-%lx", getpid(), (long)now.tv_sec, now.tv_nsec);
    return kSuccess;
}

EXPORT int ncclCommInitRank(Communicator** result, int size, Id id, int rank) {
    if (!emuHasContext()) return refuse(kInvalidUsage, "the thread has no current context");
    if (group_depth) return refuse(kInvalidUsage, "a communicator in a group is not supported");
    if (size < 1 || size > kMostRanks || rank < 0 || rank >= size)
        return refuse(kInvalidArgument, "rank " + std::to_string(rank) + " of " + std::to_string(size));
    if (refused(rank)) return refuse(kSystemError, "one rank cannot join, as CUDA_EMU_NCCL_REFUSES asks");
    int file = shm_open(id.name, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(Shared)))
        return refuse(kSystemError, std::string("shared memory ") + id.name + ": " + strerror(errno));
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) return refuse(kSystemError, std::string("shared memory ") + id.name + ": " + strerror(errno));
    auto* shared = (Shared*)memory;
    shared->ranks[rank].process = getpid();
    if (shared->ranks[rank].joined.exchange(1)) return refuse(kInvalidUsage, "two ranks " + std::to_string(rank));
    // This waits for all, for ever, as NCCL does.
    for (int other = 0; other < size; other++) {
        while (!shared->ranks[other].joined) usleep(100);
    }
    shm_unlink(id.name);
    *result = new Communicator{shared, rank, size};
    return kSuccess;
}

struct Config {
    size_t size;
    unsigned magic, version;
    int blocking;
};
EXPORT int ncclCommInitRankConfig(Communicator** result, int size, Id id, int rank, Config* config) {
    if (config && config->blocking == 0) return refuse(kInvalidArgument, "a communicator that does not block is not supported");
    return ncclCommInitRank(result, size, id, rank);
}

// The communicator itself stays: work that is queued still names it.
static int leave(Communicator* comm) {
    if (!comm || comm->aborted) return refuse(kInvalidArgument, "the communicator is gone already");
    // Where NCCL would wait for ever, this does not end the communicator.
    if (emuRecorded(comm)) return refuse(kInvalidUsage, "a graph that uses the communicator is not destroyed yet, which on a GPU hangs");
    comm->aborted = true;
    return kSuccess;
}
EXPORT int ncclCommAbort(Communicator* comm) {
    int result = leave(comm);
    // A test that aborts such a one knows by this that it did.
    if (result == kSuccess && comm->recordings) emuSay("NCCL: a communicator that graphs used is aborted, after them");
    return result;
}
EXPORT int ncclCommFinalize(Communicator* comm) { return comm && !comm->aborted ? (int)kSuccess : (int)kInvalidArgument; }
EXPORT int ncclCommDestroy(Communicator* comm) {
    if (comm && comm->active) return refuse(kInvalidUsage, "ncclCommDestroy with a collective under way, which on a GPU hangs");
    return leave(comm);
}
EXPORT int ncclCommCount(const Communicator* comm, int* size) {
    *size = comm->size;
    return kSuccess;
}
EXPORT int ncclCommUserRank(const Communicator* comm, int* rank) {
    *rank = comm->rank;
    return kSuccess;
}
EXPORT int ncclCommGetAsyncError(Communicator* comm, int* error) {
    if (!comm || comm->aborted) return refuse(kInvalidArgument, "the communicator is gone already");
    *error = comm->shared->error;
    return kSuccess;
}

// ---- collectives

EXPORT int ncclAllReduce(const void* send, void* receive, size_t count, int type, int reduction, Communicator* comm, void* stream) {
    return start({comm, {kAllReduce, type, reduction, 0, count}, (const char*)send, (char*)receive, stream});
}
EXPORT int ncclBroadcast(const void* send, void* receive, size_t count, int type, int root, Communicator* comm, void* stream) {
    return start({comm, {kBroadcast, type, 0, root, count}, (const char*)send, (char*)receive, stream});
}
EXPORT int ncclReduce(const void* send, void* receive, size_t count, int type, int reduction, int root, Communicator* comm, void* stream) {
    return start({comm, {kReduce, type, reduction, root, count}, (const char*)send, (char*)receive, stream});
}
EXPORT int ncclAllGather(const void* send, void* receive, size_t count, int type, Communicator* comm, void* stream) {
    return start({comm, {kAllGather, type, 0, 0, count}, (const char*)send, (char*)receive, stream});
}
EXPORT int ncclReduceScatter(const void* send, void* receive, size_t count, int type, int reduction, Communicator* comm, void* stream) {
    return start({comm, {kReduceScatter, type, reduction, 0, count}, (const char*)send, (char*)receive, stream});
}

#define REFUSED(name) \
    EXPORT int name() { return refuse(kInvalidUsage, #name " is not supported (tests/cuda-double)"); }
REFUSED(ncclSend)
REFUSED(ncclRecv)
REFUSED(ncclCommInitAll)
REFUSED(ncclCommSplit)
REFUSED(ncclCommRegister)
REFUSED(ncclCommDeregister)
REFUSED(ncclCommCuDevice)
REFUSED(ncclMemAlloc)
REFUSED(ncclMemFree)
REFUSED(ncclRedOpCreatePreMulSum)
REFUSED(ncclRedOpDestroy)
