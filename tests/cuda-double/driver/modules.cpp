// Modules, functions, launches.
#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "../ptx/ptx.h"
#include "driver.h"

constexpr int kSharedByDefault = 48 * 1024;
constexpr int kSharedAtMost = 166912;

struct Module {
    void* library = nullptr;
    ptx::Module ptx;  // in place of a library
    const EmuKernel* kernels = nullptr;
    EmuLaunchFunction launch = nullptr;
};
struct Function {
    Module* module;
    const EmuKernel* kernel;
    int shared_at_most = kSharedByDefault;
};
static std::map<Module*, std::unique_ptr<Module>> modules;
static std::map<Function*, std::unique_ptr<Function>> functions;

const char* running_kernel;

static Function* find_function(void* handle) {
    auto found = functions.find((Function*)handle);
    return found == functions.end() ? nullptr : found->first;
}

EXPORT int cuModuleLoadData(void** handle, const void* image) {
    ENTER();
    static const char tag[] = "//CUDA-EMU-IMAGE ";
    const char* text = (const char*)image;
    auto module = std::make_unique<Module>();
    if (strstr(text, "\n.version ")) {
        try {
            ptx::read_module(text, module->ptx);
        } catch (const std::runtime_error& problem) {
            emuSay("cuModuleLoadData: %s", problem.what());
            return kInvalidImage;
        }
        module->kernels = module->ptx.table.data();
        module->launch = ptx::launch;
        *handle = module.get();
        modules[module.get()] = std::move(module);
        return kSuccess;
    }
    if (strncmp(text, tag, strlen(tag))) {
        emuSay("cuModuleLoadData: expected what the double's NVRTC made, found something else");
        return kInvalidImage;
    }
    std::string path = text + strlen(tag);
    path.resize(path.find('\n'));
    module->library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!module->library) {
        emuSay("cuModuleLoadData: %s", dlerror());
        return kInvalidImage;
    }
    module->kernels = (const EmuKernel*)dlsym(module->library, "emu_kernels");
    module->launch = (EmuLaunchFunction)dlsym(module->library, "emu_launch");
    if (!module->kernels || !module->launch) return kInvalidImage;
    *handle = module.get();
    modules[module.get()] = std::move(module);
    return kSuccess;
}
EXPORT int cuModuleLoadDataEx(void** handle, const void* image, unsigned, int*, void**) { return cuModuleLoadData(handle, image); }

// The code stays in the process, since work under way may need it; its handles end here.
EXPORT int cuModuleUnload(void* handle) {
    ENTER();
    auto found = modules.find((Module*)handle);
    if (found == modules.end()) return kInvalidHandle;
    if (int error = wait_for_all(lock)) return error;
    for (auto function = functions.begin(); function != functions.end();) {
        function = function->second->module == found->first ? functions.erase(function) : std::next(function);
    }
    modules.erase(found);
    return kSuccess;
}

EXPORT int cuModuleGetFunction(void** handle, void* module_handle, const char* name) {
    ENTER();
    auto found = modules.find((Module*)module_handle);
    if (found == modules.end()) return kInvalidHandle;
    for (const EmuKernel* kernel = found->first->kernels; kernel->name; kernel++) {
        if (strcmp(kernel->name, name)) continue;
        auto function = std::make_unique<Function>();
        function->module = found->first;
        function->kernel = kernel;
        *handle = function.get();
        functions[function.get()] = std::move(function);
        return kSuccess;
    }
    return kNotFound;
}

EXPORT int cuFuncGetAttribute(int* value, int attribute, void* handle) {
    Lock lock(driver_mutex);
    Function* function = find_function(handle);
    if (!function) return kInvalidHandle;
    switch (attribute) {
        case 0:
            *value = function->kernel->max_threads;
            return kSuccess;  // MAX_THREADS_PER_BLOCK
        case 8:
            *value = function->shared_at_most;
            return kSuccess;  // MAX_DYNAMIC_SHARED_SIZE_BYTES
    }
    emuSay("cuFuncGetAttribute: attribute %d is not one it knows (registers and spills are a compiler's matter)", attribute);
    return kNotSupported;
}

EXPORT int cuFuncSetAttribute(void* handle, int attribute, int value) {
    Lock lock(driver_mutex);
    Function* function = find_function(handle);
    if (!function) return kInvalidHandle;
    if (attribute == 9) return kSuccess;  // PREFERRED_SHARED_MEMORY_CARVEOUT: a hint
    if (attribute != 8) {
        emuSay("cuFuncSetAttribute: attribute %d is not one it knows", attribute);
        return kNotSupported;
    }
    if (value < 0 || value > kSharedAtMost) return kInvalidValue;
    function->shared_at_most = value;
    return kSuccess;
}

EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* handle, int threads, size_t shared) {
    Lock lock(driver_mutex);
    Function* function = find_function(handle);
    if (!function || threads <= 0 || threads > 1024) return kInvalidValue;
    *blocks = std::min({32, 2048 / threads, shared ? (int)(167936 / (shared + 1024)) : 32});
    return kSuccess;
}
EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void* handle, int threads, size_t shared, unsigned) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, handle, threads, shared);
}

// A kernel's arguments, copied when it is launched.
using Arguments = std::vector<std::vector<char>>;

static bool pointers_valid(const EmuKernel* kernel, const Arguments& arguments) {
    for (unsigned i = 0; i < kernel->parameters; i++) {
        if (!kernel->pointers[i]) continue;
        Address address;
        memcpy(&address, arguments[i].data(), sizeof address);
        if (!address || inside(address, 1) || pinned((void*)address, 1)) continue;
        emuSay("kernel %s: argument %u, %#llx, points into no allocation", kernel->name, i, address);
        return false;
    }
    return true;
}

static char* stacks() {
    static char* memory = [] {
        void* mapping = mmap(nullptr, EMU_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return mapping == MAP_FAILED ? nullptr : (char*)mapping;
    }();
    return memory;
}

// The order of a kernel's threads in its next run. Each kernel takes turns by itself: a recorded step has a fixed number of kernels, so that a count
// of all runs would give each of them one order again and again.
static int order(const EmuKernel* kernel) {
    static std::map<const EmuKernel*, int> runs;
    if (environment_is("CUDA_EMU_ORDER", "turns")) return runs[kernel]++ % 3;
    return environment_is("CUDA_EMU_ORDER", "rev") ? 1 : environment_is("CUDA_EMU_ORDER", "rand") ? 2 : 0;
}

EXPORT int cuLaunchKernel(void* handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                          unsigned block_z, unsigned shared, void* stream_handle, void** parameters, void** extra) {
    ENTER();
    Function* function = find_function(handle);
    Stream* stream = find_stream(stream_handle);
    if (!function || !stream) return kInvalidHandle;
    const EmuKernel* kernel = function->kernel;
    uint64_t threads = (uint64_t)block_x * block_y * block_z;
    bool fits = grid_x && grid_x <= 2147483647u && grid_y && grid_y <= 65535 && grid_z && grid_z <= 65535 && threads && block_x <= 1024 &&
                block_y <= 1024 && block_z <= 64 && threads <= (uint64_t)kernel->max_threads && (int)shared <= function->shared_at_most;
    if (!fits || extra) {
        emuSay(
            "kernel %s: a launch of grid %u %u %u, block %u %u %u (at most %d threads), %u bytes of shared memory (at most %d)%s is not "
            "possible",
            kernel->name, grid_x, grid_y, grid_z, block_x, block_y, block_z, kernel->max_threads, shared, function->shared_at_most,
            extra ? ", with extra" : "");
        return kInvalidValue;
    }
    auto arguments = std::make_shared<Arguments>();
    for (unsigned i = 0; i < kernel->parameters; i++)
        arguments->emplace_back((char*)parameters[i], (char*)parameters[i] + kernel->sizes[i]);
    if (!pointers_valid(kernel, *arguments)) return kInvalidValue;
    EmuLaunchFunction launch = function->module->launch;
    EmuLaunch what = {kernel, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, nullptr, nullptr, shared, stacks(), 0, 0};
    if (!what.stacks) return kOutOfMemory;
    return push(stream, [=](EmuProgress*) mutable {
        static unsigned seed = (unsigned)setting("CUDA_EMU_SEED", 1);
        // Memory may have been freed since the launch was queued or captured.
        if (!pointers_valid(kernel, *arguments)) return (int)kLaunchFailed;
        std::vector<void*> pointers;
        for (auto& argument : *arguments) pointers.push_back(argument.data());
        std::unique_ptr<char, void (*)(void*)> memory((char*)aligned_alloc(256, (shared + 511) / 256 * 256), free);
        what.parameters = pointers.data();
        what.shared = memory.get();
        what.seed = seed++;
        what.order = order(kernel);
        watch_faults();
        running_kernel = kernel->name;
        const char* error = launch(&what);
        running_kernel = nullptr;
        if (!error) return kDone;
        emuSay("kernel %s: %s", kernel->name, error);
        return (int)kLaunchFailed;
    });
}
