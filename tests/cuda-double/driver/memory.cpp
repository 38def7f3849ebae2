// Device and pinned memory: host memory between guard pages, poisoned with NaNs, never handed out twice in a row.
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "driver.h"

constexpr size_t kPage = 4096;
// A GPU's allocations start at multiples of 256; 16 is what its widest load needs, and leaves at most 15 bytes before the guard page.
constexpr size_t kAlignment = 16;

struct Block {
    size_t bytes;
    char* mapping;  // guard page, `pages` bytes, guard page
    size_t pages;
    unsigned char* written;  // a byte for each of the allocation's; null unless kernels run as PTX
};
static std::map<Address, Block> blocks;
static std::map<char*, size_t> pinned_blocks;
static size_t used;
// Bytes of freed memory that the default pool may keep, and bytes that it keeps: neither used, nor free for the driver.
static uint64_t threshold, kept;

static size_t total_memory() { return (size_t)setting("CUDA_EMU_MEMORY", 4l << 30); }

bool inside(Address address, size_t bytes) {
    auto after = blocks.upper_bound(address);
    if (after == blocks.begin()) return false;
    auto& [start, block] = *--after;
    return address >= start && address + bytes <= start + block.bytes;
}
bool find_memory(Address address, Memory& memory) {
    auto after = blocks.upper_bound(address);
    if (after != blocks.begin()) {
        auto& [start, block] = *--after;
        if (address < start + block.bytes) {
            memory = {start, start + block.bytes, block.written};
            return true;
        }
    }
    auto host = pinned_blocks.upper_bound((char*)address);
    if (host == pinned_blocks.begin()) return false;
    auto& [start, size] = *--host;
    if (address >= (Address)start + size) return false;
    memory = {(Address)start, (Address)start + size, nullptr};
    return true;
}

// Notes that bytes of an allocation were written; copied ones are as good as those that they were copied from.
static void note_written(Address address, size_t bytes, Address from = 0) {
    Memory to, source;
    if (!bytes || !find_memory(address, to) || !to.written) return;
    if (from && find_memory(from, source) && source.written)
        memmove(to.written + (address - to.from), source.written + (from - source.from), bytes);
    else
        memset(to.written + (address - to.from), 1, bytes);
}
EXPORT void emuWritten(unsigned long long address, size_t bytes) { note_written(address, bytes); }

EXPORT int emuInside(unsigned long long address, size_t bytes) {
    Lock lock(driver_mutex);
    return inside(address, bytes);
}
EXPORT int emuInsideLocked(unsigned long long address, size_t bytes) { return inside(address, bytes); }

bool pinned(const void* address, size_t bytes) {
    auto after = pinned_blocks.upper_bound((char*)address);
    if (after == pinned_blocks.begin()) return false;
    auto& [start, size] = *--after;
    return (char*)address + bytes <= start + size;
}

static bool untouched(const char* from, const char* to) {
    for (; from < to; from++) {
        if (*from != (char)0xff) return false;
    }
    return true;
}

bool canaries_hold() {
    for (auto& [start, block] : blocks) {
        const char *first = block.mapping + kPage, *data = (const char*)start, *end = data + block.bytes, *last = first + block.pages;
        // Before an allocation the nearest bytes alone are looked at here, all of them when it is freed.
        const char* before = data - first > 64 ? data - 64 : first;
        if (untouched(before, data) && untouched(end, last)) continue;
        emuSay("a write beside the allocation of %zu bytes at %#llx", block.bytes, start);
        return false;
    }
    return true;
}

// ---- a kernel that leaves its memory dies here, with its name

static struct sigaction earlier_segv, earlier_bus;

static void on_fault(int number, siginfo_t* info, void* context) {
    if (running_kernel) {
        emuSay("kernel %s: access to address %p, which is no device memory (out of bounds, or, at 0, perhaps misaligned)", running_kernel,
               info->si_addr);
        describe_address((Address)info->si_addr);
    }
    struct sigaction* earlier = number == SIGSEGV ? &earlier_segv : &earlier_bus;
    if (!running_kernel && (earlier->sa_flags & SA_SIGINFO) && earlier->sa_sigaction) {
        earlier->sa_sigaction(number, info, context);
        return;
    }
    signal(number, SIG_DFL);
    raise(number);
}

void watch_faults() {
    // The stack of its own that a handler gets must hold all vector registers, and the thread's first one may be too small for them.
    static thread_local void* stack = nullptr;
    if (!stack) {
        constexpr size_t bytes = 256 * 1024;
        stack = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        stack_t description = {};
        description.ss_sp = stack;
        description.ss_size = bytes;
        if (stack != MAP_FAILED) sigaltstack(&description, nullptr);
    }
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction action = {};
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigaction(SIGSEGV, &action, &earlier_segv);
        sigaction(SIGBUS, &action, &earlier_bus);
    });
}

void describe_address(Address address) {
    for (auto& [start, block] : blocks) {
        Address from = (Address)block.mapping, to = from + block.pages + 2 * kPage;
        if (address < from || address >= to) continue;
        if (address < start)
            emuSay("it is %llu bytes before an allocation of %zu bytes", start - address, block.bytes);
        else
            emuSay("it is %llu bytes behind the end of an allocation of %zu bytes", address - start - block.bytes, block.bytes);
    }
}

// ---- device memory

static int allocate(Address* address, size_t bytes) {
    if (!bytes) return kInvalidValue;
    if (used + bytes > total_memory()) return kOutOfMemory;
    size_t pages = (bytes + kPage - 1) / kPage * kPage;
    void* mapping = mmap(nullptr, pages + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) return kOutOfMemory;
    char* first = (char*)mapping + kPage;
    if (mprotect(first, pages, PROT_READ | PROT_WRITE)) return kOutOfMemory;
    memset(first, 0xff, pages);
    *address = (Address)(first + (pages - bytes) / kAlignment * kAlignment);
    static const bool counted = environment_is("CUDA_EMU_CODE", "ptx");
    void* written = nullptr;
    if (counted) {
        written = mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (written == MAP_FAILED) return kOutOfMemory;
    }
    blocks[*address] = {bytes, (char*)mapping, pages, (unsigned char*)written};
    used += bytes;
    kept -= kept < bytes ? kept : bytes;
    return kSuccess;
}

static int release(Address address) {
    auto found = blocks.find(address);
    if (found == blocks.end()) {
        emuSay("a free of %#llx, which is no allocation (freed twice?)", address);
        return kInvalidValue;
    }
    Block block = found->second;
    char* first = block.mapping + kPage;
    if (!untouched(first, (char*)address) || !untouched((char*)address + block.bytes, first + block.pages)) {
        emuSay("a write beside the allocation of %zu bytes at %#llx, found when it was freed", block.bytes, address);
        context_error = kLaunchFailed;
    }
    blocks.erase(found);
    used -= block.bytes;
    kept = kept + block.bytes < threshold ? kept + block.bytes : threshold;
    // The addresses stay taken for a while, so that a use after the free is a fault.
    static std::deque<Block> quarantine;
    if (block.written) munmap(block.written, block.pages);
    mmap(first, block.pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    quarantine.push_back(block);
    if (quarantine.size() > 1000) {
        munmap(quarantine.front().mapping, quarantine.front().pages + 2 * kPage);
        quarantine.pop_front();
    }
    return context_error;
}

EXPORT int cuMemAlloc_v2(Address* address, size_t bytes) {
    ENTER();
    if (int error = unsafe_in_capture("cuMemAlloc")) return error;
    return allocate(address, bytes);
}

EXPORT int cuMemFree_v2(Address address) {
    ENTER();
    if (!address) return kSuccess;
    if (int error = unsafe_in_capture("cuMemFree")) return error;
    if (int error = wait_for_all(lock)) return error;
    return release(address);
}

EXPORT int cuMemAllocAsync(Address* address, size_t bytes, void* handle) {
    ENTER();
    Stream* stream = find_stream(handle);
    if (!stream) return kInvalidHandle;
    if (stream->capture) {
        stream->capture->broken = true;
        emuSay("cuMemAllocAsync in a capture (a memory node) is not supported: allocate before it");
        return kNotSupported;
    }
    return allocate(address, bytes);
}

EXPORT int cuMemFreeAsync(Address address, void* handle) {
    ENTER();
    Stream* stream = find_stream(handle);
    if (!stream) return kInvalidHandle;
    if (!inside(address, 1)) return kInvalidValue;
    if (stream->capture) {
        stream->capture->broken = true;
        emuSay("cuMemFreeAsync in a capture (a memory node) is not supported: free after it");
        return kNotSupported;
    }
    return push(stream, [address](EmuProgress*) { return release(address); });
}

EXPORT int cuDeviceGetDefaultMemPool(void** pool, int) {
    *pool = &threshold;
    return kSuccess;
}
EXPORT int cuMemPoolSetAttribute(void* pool, int attribute, void* value) {
    Lock lock(driver_mutex);
    if (pool != &threshold || attribute != 4) return kNotSupported;  // RELEASE_THRESHOLD
    memcpy(&threshold, value, sizeof threshold);
    return kSuccess;
}
EXPORT int cuMemPoolGetAttribute(void* pool, int attribute, void* value) {
    Lock lock(driver_mutex);
    // RELEASE_THRESHOLD, RESERVED_MEM_CURRENT, USED_MEM_CURRENT
    if (pool != &threshold || (attribute != 4 && attribute != 5 && attribute != 7)) return kNotSupported;
    uint64_t bytes = attribute == 4 ? threshold : attribute == 5 ? used + kept : used;
    memcpy(value, &bytes, sizeof bytes);
    return kSuccess;
}

EXPORT int cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
    ENTER();
    *total_bytes = total_memory();
    *free_bytes = *total_bytes - used - kept;
    return kSuccess;
}
EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int) {
    *bytes = total_memory();
    return kSuccess;
}

// ---- pinned host memory

EXPORT int cuMemHostAlloc(void** address, size_t bytes, unsigned) {
    ENTER();
    if (!bytes) return kInvalidValue;
    *address = aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
    if (!*address) return kOutOfMemory;
    memset(*address, 0xff, bytes);
    pinned_blocks[(char*)*address] = bytes;
    return kSuccess;
}
EXPORT int cuMemAllocHost_v2(void** address, size_t bytes) { return cuMemHostAlloc(address, bytes, 0); }

EXPORT int cuMemFreeHost(void* address) {
    ENTER();
    wait_for_all(lock);
    if (!pinned_blocks.erase((char*)address)) return kInvalidValue;
    free(address);
    return kSuccess;
}

EXPORT int cuMemHostGetDevicePointer_v2(Address* address, void* host, unsigned) {
    Lock lock(driver_mutex);
    if (!pinned(host, 1)) return kInvalidValue;
    *address = (Address)host;
    return kSuccess;
}

EXPORT int cuMemHostGetFlags(unsigned* flags, void* host) {
    Lock lock(driver_mutex);
    if (!pinned(host, 1)) return kInvalidValue;
    *flags = 0;
    return kSuccess;
}

// ---- copies and sets

// Every transfer checks its device addresses when it is queued and again when it runs.
static int transfer(void* handle, std::function<bool()> valid, std::function<void()> work) {
    Stream* stream = find_stream(handle);
    if (!stream) return kInvalidHandle;
    if (!valid()) {
        emuSay("a copy or set of addresses that are not all device memory");
        return kInvalidValue;
    }
    return push(stream, [=](EmuProgress*) {
        if (!valid()) {
            emuSay("a copy or set of memory that has been freed, or has changed on the host");
            return (int)kLaunchFailed;
        }
        work();
        return kDone;
    });
}

// Whether memory of the host, perhaps freed since, still has these bytes.
static bool unchanged(const void* memory, const std::vector<char>& bytes) {
    std::vector<char> found(bytes.size());
    iovec from = {(void*)memory, bytes.size()}, to = {found.data(), found.size()};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)bytes.size() && found == bytes;
}

EXPORT int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, void* handle) {
    ENTER();
    Stream* stream = find_stream(handle);
    auto valid = [=] { return inside(to, bytes); };
    // Pinned memory is read when the stream comes here, other memory is staged at once. Where other memory could be read later, as by a GPU that
    // reads the host's memory itself, it must stay until then.
    static bool late = environment_is("CUDA_EMU_PAGEABLE", "late");
    if (pinned(from, bytes) || (stream && stream->capture)) return transfer(handle, valid, [=] {
            memcpy((void*)to, from, bytes);
            note_written(to, bytes);
        });
    auto staged = std::make_shared<std::vector<char>>((const char*)from, (const char*)from + bytes);
    auto still = [=] { return valid() && (!late || !bytes || unchanged(from, *staged)); };
    return transfer(handle, still, [=] {
        memcpy((void*)to, staged->data(), bytes);
        note_written(to, bytes);
    });
}

EXPORT int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, void* handle) {
    ENTER();
    int error = transfer(handle, [=] { return inside(from, bytes); }, [=] { memcpy(to, (void*)from, bytes); });
    if (error || pinned(to, bytes)) return error;
    Stream* stream = find_stream(handle);
    // Into other memory the call returns once the bytes are there.
    return stream->capture ? (int)kSuccess : wait_for(stream, stream->pushed, lock);
}

EXPORT int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void* handle) {
    ENTER();
    auto move = [=] {
        memmove((void*)to, (void*)from, bytes);
        note_written(to, bytes, from);
    };
    return transfer(handle, [=] { return inside(to, bytes) && inside(from, bytes); }, move);
}

EXPORT int cuMemsetD8Async(Address to, unsigned char value, size_t bytes, void* handle) {
    ENTER();
    auto fill = [=] {
        memset((void*)to, value, bytes);
        note_written(to, bytes);
    };
    return transfer(handle, [=] { return inside(to, bytes); }, fill);
}

EXPORT int cuMemsetD32Async(Address to, unsigned value, size_t count, void* handle) {
    ENTER();
    auto fill = [=] {
        for (size_t i = 0; i < count; i++) ((unsigned*)to)[i] = value;
        note_written(to, 4 * count);
    };
    return transfer(handle, [=] { return inside(to, 4 * count); }, fill);
}

// The calls without a stream: on the default stream, and waited for.
static int finished(int error, const char* call) {
    if (error) return error;
    Lock lock(driver_mutex);
    if (int error = unsafe_in_capture(call)) return error;
    Stream* stream = find_stream(nullptr);
    return wait_for(stream, stream->pushed, lock);
}
EXPORT int cuMemcpyHtoD_v2(Address to, const void* from, size_t bytes) {
    return finished(cuMemcpyHtoDAsync_v2(to, from, bytes, nullptr), "cuMemcpyHtoD");
}
EXPORT int cuMemcpyDtoH_v2(void* to, Address from, size_t bytes) {
    return finished(cuMemcpyDtoHAsync_v2(to, from, bytes, nullptr), "cuMemcpyDtoH");
}
EXPORT int cuMemcpyDtoD_v2(Address to, Address from, size_t bytes) {
    return finished(cuMemcpyDtoDAsync_v2(to, from, bytes, nullptr), "cuMemcpyDtoD");
}
EXPORT int cuMemsetD8_v2(Address to, unsigned char value, size_t bytes) {
    return finished(cuMemsetD8Async(to, value, bytes, nullptr), "cuMemsetD8");
}
EXPORT int cuMemsetD32_v2(Address to, unsigned value, size_t count) {
    return finished(cuMemsetD32Async(to, value, count, nullptr), "cuMemsetD32");
}
