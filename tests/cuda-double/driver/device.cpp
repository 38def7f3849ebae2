// Devices, contexts, errors. The device answers like a small one of compute capability 8.0, and says in its name what it is.
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "driver.h"

std::mutex driver_mutex;
int context_error;
thread_local bool in_host_function;

static bool initialized;
static std::map<int, int> retained;  // device: how often its primary context is held
static char contexts[16];            // the address of element d is device d's primary context
static thread_local void* current_context;

extern "C" __attribute__((visibility("default"))) void emuSay(const char* format, ...) {
    // In one write and with a small frame: it also speaks from a signal handler, and beside other ranks.
    char text[512] = "cuda-double: ";
    size_t begun = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + begun, sizeof text - begun - 1, format, arguments);
    va_end(arguments);
    strcat(text, "\n");
    if (write(STDERR_FILENO, text, strlen(text)) < 0) return;
}

long setting(const char* variable, long otherwise) {
    const char* text = getenv(variable);
    return text && *text ? atol(text) : otherwise;
}

bool environment_is(const char* variable, const char* value) {
    const char* text = getenv(variable);
    return text && !strcmp(text, value);
}

static int devices() {
    long count = setting("CUDA_EMU_DEVICES", 1);
    return count < 0 || count > (long)sizeof contexts ? 1 : (int)count;
}

int refuse_host_function() {
    emuSay("a host function called CUDA, which is not allowed");
    return kNotPermitted;
}

int usable() {
    if (!initialized) return kNotInitialized;
    if (!current_context) {
        emuSay("a call on a thread that has no current context (cuCtxSetCurrent)");
        return kInvalidContext;
    }
    return context_error;
}

EXPORT int emuHasContext() { return current_context != nullptr; }

EXPORT int cuInit(unsigned flags) {
    if (flags) return kInvalidValue;
    Lock lock(driver_mutex);
    static const char* const known[][2] = {
        {"CUDA_EMU_ORDER", "fwd rev rand turns"}, {"CUDA_EMU_STREAMS", "eager lazy"}, {"CUDA_EMU_CODE", "source ptx"},
        {"CUDA_EMU_PAGEABLE", "staged late"}};
    for (auto [variable, words] : known) {
        const char* value = getenv(variable);
        if (!value || strstr((std::string(" ") + words + " ").c_str(), (std::string(" ") + value + " ").c_str())) continue;
        emuSay("%s=%s: expected one of: %s", variable, value, words);
        return kInvalidValue;
    }
    initialized = true;
    return devices() ? kSuccess : 100;
}

EXPORT int cuDriverGetVersion(int* version) {
    *version = (int)setting("CUDA_EMU_DRIVER", 12080);
    return kSuccess;
}

EXPORT int cuGetErrorName(int result, const char** name) {
    static const std::map<int, const char*> names = {
        {kSuccess, "CUDA_SUCCESS"},
        {kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
        {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
        {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED"},
        {100, "CUDA_ERROR_NO_DEVICE"},
        {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE"},
        {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE"},
        {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
        {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE"},
        {kNotFound, "CUDA_ERROR_NOT_FOUND"},
        {kNotReady, "CUDA_ERROR_NOT_READY"},
        {kLaunchTimeout, "CUDA_ERROR_LAUNCH_TIMEOUT"},
        {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED"},
        {kNotPermitted, "CUDA_ERROR_NOT_PERMITTED"},
        {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED"},
        {kCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
        {kCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
        {kCaptureUnmatched, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"},
        {kCaptureUnjoined, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
        {kCaptureIsolation, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
        {kCaptureWrongThread, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"},
    };
    auto found = names.find(result);
    *name = found == names.end() ? nullptr : found->second;
    return found == names.end() ? kInvalidValue : kSuccess;
}

EXPORT int cuGetErrorString(int result, const char** text) { return cuGetErrorName(result, text); }

EXPORT int cuDeviceGetCount(int* count) {
    if (!initialized) return kNotInitialized;
    *count = devices();
    return kSuccess;
}

EXPORT int cuDeviceGet(int* device, int ordinal) {
    if (!initialized) return kNotInitialized;
    if (ordinal < 0 || ordinal >= devices()) return kInvalidDevice;
    *device = ordinal;
    return kSuccess;
}

EXPORT int cuDeviceGetName(char* name, int length, int) {
    snprintf(name, length, "CUDA-EMU host test double (not a GPU)");
    return kSuccess;
}

// One "GPU" is shared by all processes of a host, unless CUDA_EMU_UUID (a number) tells them apart.
EXPORT int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
    memset(uuid, 0xE0, 16);
    uuid[14] = (unsigned char)setting("CUDA_EMU_UUID", 0);
    uuid[15] = (unsigned char)device;
    return kSuccess;
}
EXPORT int cuDeviceGetUuid(unsigned char* uuid, int device) { return cuDeviceGetUuid_v2(uuid, device); }

EXPORT int cuDeviceGetPCIBusId(char* text, int length, int device) {
    snprintf(text, length, "0000:%02x:00.0", device);
    return kSuccess;
}

EXPORT int cuDeviceGetAttribute(int* value, int attribute, int device) {
    static const std::map<int, int> values = {
        {1, 1024},                                      // MAX_THREADS_PER_BLOCK
        {2, 1024},                                      // MAX_BLOCK_DIM_X, Y, Z
        {3, 1024},        {4, 64},    {5, 2147483647},  // MAX_GRID_DIM_X, Y, Z
        {6, 65535},       {7, 65535}, {8, 49152},       // MAX_SHARED_MEMORY_PER_BLOCK
        {9, 65536},                                     // TOTAL_CONSTANT_MEMORY
        {10, 32},                                       // WARP_SIZE
        {11, 2147483647},                               // MAX_PITCH
        {12, 65536},                                    // MAX_REGISTERS_PER_BLOCK
        {13, 1000000},                                  // CLOCK_RATE
        {14, 512},                                      // TEXTURE_ALIGNMENT
        {16, 4},                                        // MULTIPROCESSOR_COUNT
        {17, 0},                                        // KERNEL_EXEC_TIMEOUT
        {18, 0},                                        // INTEGRATED
        {19, 1},                                        // CAN_MAP_HOST_MEMORY
        {20, 0},                                        // COMPUTE_MODE
        {31, 1},                                        // CONCURRENT_KERNELS
        {32, 0},                                        // ECC_ENABLED
        {34, 0},                                        // PCI_DEVICE_ID
        {36, 1000000},                                  // MEMORY_CLOCK_RATE
        {37, 256},                                      // GLOBAL_MEMORY_BUS_WIDTH
        {38, 4 << 20},                                  // L2_CACHE_SIZE
        {39, 2048},                                     // MAX_THREADS_PER_MULTIPROCESSOR
        {40, 1},                                        // ASYNC_ENGINE_COUNT
        {41, 1},                                        // UNIFIED_ADDRESSING
        {50, 0},                                        // PCI_DOMAIN_ID
        {75, 8},                                        // COMPUTE_CAPABILITY_MAJOR, MINOR
        {76, 0},          {78, 1},                      // STREAM_PRIORITIES_SUPPORTED
        {81, 167936},                                   // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
        {82, 65536},                                    // MAX_REGISTERS_PER_MULTIPROCESSOR
        {83, 0},                                        // MANAGED_MEMORY
        {95, 0},                                        // COOPERATIVE_LAUNCH
        {97, 166912},                                   // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        {106, 32},                                      // MAX_BLOCKS_PER_MULTIPROCESSOR
        {111, 1024},                                    // RESERVED_SHARED_MEMORY_PER_BLOCK
        {115, 1},                                       // MEMORY_POOLS_SUPPORTED
    };
    if (device < 0 || device >= devices()) return kInvalidDevice;
    if (attribute == 33) {  // PCI_BUS_ID
        *value = device;
        return kSuccess;
    }
    auto found = values.find(attribute);
    if (found == values.end()) {
        emuSay("cuDeviceGetAttribute: attribute %d is not one it knows (tests/cuda-double/driver/device.cpp)", attribute);
        return kNotSupported;
    }
    *value = found->second;
    return kSuccess;
}

static void* context_of(int device) { return device >= 0 && device < devices() ? &contexts[device] : nullptr; }

EXPORT int cuDevicePrimaryCtxRetain(void** context, int device) {
    Lock lock(driver_mutex);
    if (!initialized) return kNotInitialized;
    if (!context_of(device)) return kInvalidDevice;
    retained[device]++;
    *context = context_of(device);
    return kSuccess;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
    Lock lock(driver_mutex);
    if (!retained[device]) return kInvalidContext;
    if (--retained[device] == 0) canaries_hold();
    return kSuccess;
}

EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
    Lock lock(driver_mutex);
    *flags = 0;
    *active = retained[device] > 0;
    return kSuccess;
}

EXPORT int cuCtxGetCurrent(void** context) {
    *context = current_context;
    return kSuccess;
}

EXPORT int cuCtxSetCurrent(void* context) {
    Lock lock(driver_mutex);
    if (!initialized) return kNotInitialized;
    if (context) {
        int device = (int)((char*)context - contexts);
        if (context_of(device) != context || !retained[device]) return kInvalidContext;
    }
    current_context = context;
    return kSuccess;
}

EXPORT int cuCtxGetDevice(int* device) {
    if (!current_context) return kInvalidContext;
    *device = (int)((char*)current_context - contexts);
    return kSuccess;
}

EXPORT int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    *least = *greatest = 0;
    return kSuccess;
}

// Loudly refused: a back end that needs one of these cannot be tested here, and must not believe that it was.
#define REFUSED(name)                                          \
    EXPORT int name() {                                        \
        emuSay(#name " is not supported (tests/cuda-double)"); \
        return kNotSupported;                                  \
    }
REFUSED(cuCtxCreate_v2)
REFUSED(cuCtxCreate_v3)
REFUSED(cuCtxCreate_v4)
REFUSED(cuCtxDestroy_v2)
REFUSED(cuCtxPushCurrent_v2)
REFUSED(cuCtxPopCurrent_v2)
REFUSED(cuCtxSetFlags)
REFUSED(cuCtxSetLimit)
REFUSED(cuCtxGetLimit)
REFUSED(cuCtxSetCacheConfig)
REFUSED(cuCtxGetCacheConfig)
REFUSED(cuDeviceGetMemPool)
REFUSED(cuDeviceSetMemPool)
REFUSED(cuDeviceCanAccessPeer)
REFUSED(cuMemAllocManaged)
REFUSED(cuMemAllocPitch_v2)
REFUSED(cuMemAllocFromPoolAsync)
REFUSED(cuMemPoolCreate)
REFUSED(cuMemPoolDestroy)
REFUSED(cuMemPoolTrimTo)
REFUSED(cuMemPrefetchAsync_v2)
REFUSED(cuMemAdvise_v2)
REFUSED(cuMemcpyPeerAsync)
REFUSED(cuMemcpy2DAsync_v2)
REFUSED(cuMemHostRegister_v2)
REFUSED(cuMemHostUnregister)
REFUSED(cuModuleLoad)
REFUSED(cuModuleGetGlobal_v2)
REFUSED(cuLaunchKernelEx)
REFUSED(cuLaunchCooperativeKernel)
REFUSED(cuStreamAttachMemAsync)
REFUSED(cuStreamAddCallback)
REFUSED(cuGraphExecUpdate_v2)
REFUSED(cuGraphExecKernelNodeSetParams_v2)
REFUSED(cuGraphKernelNodeSetParams_v2)
REFUSED(cuGraphClone)
REFUSED(cuGraphCreate)
REFUSED(cuProfilerStart)
REFUSED(cuProfilerStop)
