// libnvrtc's stand-in, of two kinds. With $CUDA_EMU_CODE=ptx it hands the source to NVIDIA's NVRTC, whose PTX libcuda's stand-in executes. Else it
// compiles kernels with g++ into a shared library, and calls its path "PTX":
//
// The source is preprocessed with shim/macros.h, which turns CUDA's keywords into words between @ marks; those are replaced here; then
// g++ compiles the rest behind shim/shim.h. Compiled sources are kept in $CUDA_EMU_CACHE, by a hash of everything that matters.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

enum Result { kSuccess = 0, kOutOfMemory = 1, kInvalidInput = 3, kInvalidProgram = 4, kInvalidOption = 5, kCompilation = 6 };

struct Program {
    std::string source, name, log, image;
    std::vector<std::pair<std::string, std::string>> headers;  // name, text
};

static std::string environment(const char* variable, const std::string& otherwise) {
    const char* text = getenv(variable);
    return text && *text ? text : otherwise;
}

static std::string slurp(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

static void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

static uint64_t hash(const std::string& text, uint64_t value) {
    for (unsigned char byte : text) value = (value ^ byte) * 1099511628211ull;
    return value;
}

static std::string quoted(const std::string& text) { return "'" + std::regex_replace(text, std::regex("'"), "'\\''") + "'"; }

// g++'s flags for NVRTC's options; false where one is unknown.
static bool translate(int count, const char* const* options, std::string& flags, std::string& log) {
    // Of no effect on the host; a trailing "=" or ":" takes any value.
    static const std::vector<std::string> ignored = {"--gpu-architecture=",
                                                     "-arch=",
                                                     "--std=",
                                                     "-std=",
                                                     "--fmad=",
                                                     "-fmad=",
                                                     "--ftz=",
                                                     "-ftz=",
                                                     "--prec-div=",
                                                     "-prec-div=",
                                                     "--prec-sqrt=",
                                                     "-prec-sqrt=",
                                                     "--use_fast_math",
                                                     "-use_fast_math",
                                                     "--extra-device-vectorization",
                                                     "--generate-line-info",
                                                     "-lineinfo",
                                                     "--restrict",
                                                     "-restrict",
                                                     "--device-debug",
                                                     "-G",
                                                     "--ptxas-options=",
                                                     "--ptxas-options",
                                                     "-Xptxas",
                                                     "--maxrregcount=",
                                                     "-maxrregcount=",
                                                     "-default-device",
                                                     "--default-device",
                                                     "-w",
                                                     "--disable-warnings",
                                                     "--device-as-default-execution-space",
                                                     "--split-compile=",
                                                     "--no-source-include",
                                                     "--minimal",
                                                     "-dopt=",
                                                     "--dopt="};
    for (int i = 0; i < count; i++) {
        std::string option = options[i];
        auto begins = [&](const std::string& with) { return option.compare(0, with.size(), with) == 0; };
        auto takes = [&](const std::string& with) {
            if (!begins(with)) return false;
            option = option.substr(with.size());
            if (option.empty() && i + 1 < count) option = options[++i];
            return true;
        };
        if (option == "--ptxas-options" || option == "-Xptxas") {
            i++;
            continue;
        }
        if (takes("--define-macro=") || takes("-D"))
            flags += " " + quoted("-D" + option);
        else if (takes("--undefine-macro=") || takes("-U"))
            flags += " " + quoted("-U" + option);
        else if (takes("--include-path=") || takes("-I"))
            flags += " " + quoted("-I" + option);
        else {
            bool known = false;
            for (auto& one : ignored) known = known || (one.back() == '=' ? begins(one) : option == one);
            if (!known) {
                log = "cuda-double: NVRTC option " + option + " is not one it knows (tests/cuda-double/nvrtc.cpp)\n";
                return false;
            }
        }
    }
    return true;
}

// The preprocessed source with CUDA's words replaced, and a table of its kernels behind it.
static std::string rewrite(std::string text) {
    static const std::regex kernel(
        R"re(extern\s+"C"\s+@kernel@\s*(?:@bounds\[([^@]*)\]@\s*)?void\s+(?:@bounds\[([^@]*)\]@\s*)?(\w+)\s*\()re");
    static const std::regex bounds(R"(@bounds\[[^@]*\]@)"), keyword("@kernel@"), shared("@shared@");
    static const std::regex dynamic(
        R"(extern\s+@shared@\s+(?:__attribute__\(\(aligned\([^)]*\)\)\)\s*)?([A-Za-z_][\w ]*?)\s+(\w+)\s*\[\s*\]\s*;)");
    std::string table =
        "extern \"C\" {\n__attribute__((visibility(\"default\"))) extern const EmuKernel emu_kernels[];\nconst EmuKernel emu_kernels[] = "
        "{\n";
    std::set<std::string> names;
    for (std::sregex_iterator found(text.begin(), text.end(), kernel), end; found != end; ++found) {
        std::string name = (*found)[3], most = (*found)[1].matched ? (*found)[1] : (*found)[2];
        if (!names.insert(name).second) continue;
        table += "    emu::Thunk<&" + name + ", decltype(&" + name + ")>::describe(\"" + name + "\"" + (most.empty() ? "" : ", " + most) +
                 "),\n";
    }
    table += "    {nullptr, nullptr, 0, nullptr, nullptr, 0, nullptr},\n};\n}\n";
    text = std::regex_replace(text, dynamic, "$1* const $2 = ($1*)emu::block.shared;");
    text = std::regex_replace(text, bounds, "");
    text = std::regex_replace(text, keyword, "");
    text = std::regex_replace(text, shared, "static __attribute__((section(\"emu_shared\"), aligned(16)))");
    return "#include \"shim.h\"\nnamespace {\n" + text + "\n}\n#line 1 \"table of kernels\"\n" + table;
}

EXPORT const char* nvrtcGetErrorString(int result) {
    switch (result) {
        case kSuccess:
            return "NVRTC_SUCCESS";
        case kInvalidInput:
            return "NVRTC_ERROR_INVALID_INPUT";
        case kInvalidProgram:
            return "NVRTC_ERROR_INVALID_PROGRAM";
        case kInvalidOption:
            return "NVRTC_ERROR_INVALID_OPTION";
        case kCompilation:
            return "NVRTC_ERROR_COMPILATION";
    }
    return "NVRTC_ERROR unknown";
}

EXPORT int nvrtcVersion(int* major, int* minor) {
    *major = 12;
    *minor = 8;
    return kSuccess;
}

static const int architectures[] = {70, 75, 80, 86, 89, 90, 100};
EXPORT int nvrtcGetNumSupportedArchs(int* count) {
    *count = sizeof architectures / sizeof *architectures;
    return kSuccess;
}
EXPORT int nvrtcGetSupportedArchs(int* list) {
    memcpy(list, architectures, sizeof architectures);
    return kSuccess;
}

// Plants a fault: $CUDA_EMU_PLANT is FROM=>TO, text of the source and what to put in its place. A test then sees whether it is noticed.
static bool plant(std::string& source) {
    std::string fault = environment("CUDA_EMU_PLANT", "");
    if (fault.empty()) return true;
    size_t arrow = fault.find("=>"), count = 0;
    std::string from = fault.substr(0, arrow), to = arrow == std::string::npos ? "" : fault.substr(arrow + 2);
    for (size_t at = source.find(from); !from.empty() && at != std::string::npos; at = source.find(from, at + to.size())) {
        source.replace(at, from.size(), to);
        count++;
    }
    fprintf(stderr, "cuda-double: CUDA_EMU_PLANT changed %zu places of the kernels\n", count);
    return count > 0;
}

EXPORT int nvrtcCreateProgram(Program** program, const char* source, const char* name, int headers, const char* const* texts,
                              const char* const* names) {
    if (!program || !source || headers < 0) return kInvalidInput;
    std::string text = source;
    if (!plant(text)) return kInvalidInput;
    *program = new Program{text, name ? name : "default_program", "", "", {}};
    for (int i = 0; i < headers; i++) (*program)->headers.emplace_back(names[i], texts[i]);
    return kSuccess;
}

EXPORT int nvrtcDestroyProgram(Program** program) {
    if (!program || !*program) return kInvalidProgram;
    delete *program;
    *program = nullptr;
    return kSuccess;
}

// NVIDIA's NVRTC, in the folder $CUDA_EMU_NVRTC; a null `compile` where it cannot be used, with the reason in `problem`.
struct Nvidia {
    int (*version)(int*, int*) = nullptr;
    int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
    int (*compile)(void*, int, const char* const*) = nullptr;
    int (*destroy)(void**) = nullptr;
    int (*size_of[2])(void*, size_t*) = {};  // of the log, of the PTX
    int (*text_of[2])(void*, char*) = {};
    std::string problem;

    Nvidia() {
        const std::string folder = environment("CUDA_EMU_NVRTC", "");
        // The compiler looks for its other half by name alone.
        for (const std::string& file : {folder + "/libnvrtc-builtins.so.12.8", folder + "/libnvrtc.so.12"}) {
            void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
            if (!library) {
                problem = std::string(dlerror()) + "; CUDA_EMU_CODE=ptx needs NVRTC 12.8: make nvrtc";
                return;
            }
            find(library, version, "nvrtcVersion");
            find(library, create, "nvrtcCreateProgram");
            find(library, compile, "nvrtcCompileProgram");
            find(library, destroy, "nvrtcDestroyProgram");
            find(library, size_of[0], "nvrtcGetProgramLogSize");
            find(library, text_of[0], "nvrtcGetProgramLog");
            find(library, size_of[1], "nvrtcGetPTXSize");
            find(library, text_of[1], "nvrtcGetPTX");
        }
    }

    template <class Function>
    static void find(void* library, Function& function, const char* name) {
        function = (Function)dlsym(library, name);
    }

    std::string text(void* program, int which) const {
        size_t bytes = 0;
        size_of[which](program, &bytes);
        std::string text(bytes, 0);
        text_of[which](program, text.data());
        return text.c_str();
    }
};

// Has NVIDIA's NVRTC compile a program, as the options say but for a virtual architecture, since nobody here needs its machine code. The PTX is
// kept by a hash of what it is made of.
static int compile_for_real(Program* program, int count, const char* const* options, const std::string& folder) {
    static const Nvidia nvidia;
    if (!nvidia.problem.empty()) {
        program->log = nvidia.problem;
        return kCompilation;
    }
    std::vector<std::string> words;
    std::vector<const char*> given, names, texts;
    for (int i = 0; i < count; i++) words.push_back(std::regex_replace(options[i], std::regex("=sm_"), "=compute_"));
    for (auto& word : words) given.push_back(word.c_str());
    for (auto& [name, text] : program->headers) names.push_back(name.c_str()), texts.push_back(text.c_str());
    int major = 0, minor = 0;
    nvidia.version(&major, &minor);
    uint64_t key = hash(program->source, 1469598103934665603ull + 1000 * major + minor);
    for (auto* list : {&given, &names, &texts}) {
        for (const char* text : *list) key = hash(text, key ^ 1);
    }
    char digits[32];
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)key);
    const std::string kept = folder + "/" + digits + ".ptx";
    if (!access(kept.c_str(), R_OK)) {
        program->image = slurp(kept);
        return kSuccess;
    }
    void* real = nullptr;
    int failed = nvidia.create(&real, program->source.c_str(), program->name.c_str(), (int)names.size(), texts.data(), names.data());
    if (failed) return failed;
    failed = nvidia.compile(real, (int)given.size(), given.data());
    program->log = nvidia.text(real, 0);
    if (!failed) {
        program->image = nvidia.text(real, 1);
        const std::string written = kept + "." + std::to_string(getpid());
        write(written, program->image);
        rename(written.c_str(), kept.c_str());
    }
    nvidia.destroy(&real);
    return failed;
}

EXPORT int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
    std::string flags;
    if (!translate(count, options, flags, program->log)) return kInvalidOption;
    std::string cxx = environment("CUDA_EMU_CXX", "g++"), optimise = environment("CUDA_EMU_CXXFLAGS", "-O2 -ffp-contract=off");
    std::string folder = environment("CUDA_EMU_CACHE", "");
    if (folder.empty()) {
        // Programs that lie there are run, so nobody else may write to it.
        folder = "/tmp/cuda-double-" + std::to_string(getuid());
        mkdir(folder.c_str(), 0700);
        struct stat made;
        if (lstat(folder.c_str(), &made) || !S_ISDIR(made.st_mode) || made.st_uid != getuid() || (made.st_mode & 0777) != 0700) {
            program->log = "expected " + folder + " to be a folder of this user alone (mode 0700), found another; remove it, or set CUDA_EMU_CACHE\n";
            return kCompilation;
        }
    }
    mkdir(folder.c_str(), 0755);
    if (environment("CUDA_EMU_CODE", "source") == "ptx") return compile_for_real(program, count, options, folder);
    std::string base = folder + "/" + std::to_string(getpid()) + "-" + std::to_string((uintptr_t)program);

    for (auto& [name, text] : program->headers) {
        mkdir((base + ".headers").c_str(), 0755);
        write(base + ".headers/" + name, text);
    }
    std::string headers = program->headers.empty() ? "" : " -I" + quoted(base + ".headers");
    write(base + ".cu", "#line 1 \"" + program->name + "\"\n" + program->source);
    std::string preprocess = cxx + " -std=c++17 -E -x c++ -imacros " + quoted(SHIM "/macros.h") + headers + flags + " " + quoted(base + ".cu") +
                             " -o " + quoted(base + ".i") + " > " + quoted(base + ".log") + " 2>&1";
    int failed = system(preprocess.c_str());
    program->log = slurp(base + ".log");
    std::string text = slurp(base + ".i");
    // The preprocessor names the file that it read, whose name is of this process; what is kept must be found by others, too.
    for (size_t at = text.find(base); at != std::string::npos; at = text.find(base, at)) text.replace(at, base.size(), "source");
    if (!failed) text = rewrite(text);
    for (auto& [name, unused] : program->headers) unlink((base + ".headers/" + name).c_str());
    if (!program->headers.empty()) rmdir((base + ".headers").c_str());
    for (const char* end : {".cu", ".i", ".log"}) unlink((base + end).c_str());
    if (failed) return kCompilation;

    uint64_t key = hash(text, hash(cxx + optimise, 1469598103934665603ull));
    for (const char* part : {"device.h", "interface.h", "launch.h", "scheduler.h", "shim.h", "types.h"})
        key = hash(slurp(std::string(SHIM "/") + part), key);
    char digits[32];
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)key);
    std::string library = folder + "/" + digits + ".so";
    if (access(library.c_str(), R_OK)) {
        write(base + ".cpp", text);
        // Shared memory is a section of plain variables, and kernels cast pointers: no aliasing rules, no clones with other linkage.
        std::string command = cxx + " -std=c++17 " + optimise +
                              " -fno-strict-aliasing -fno-stack-protector -fcf-protection=none -fno-exceptions -fno-rtti "
                              "-fvisibility=hidden -w -shared -fPIC -I" +
                              quoted(SHIM) + " " + quoted(base + ".cpp") + " -o " + quoted(base + ".so") + " > " + quoted(base + ".log") + " 2>&1";
        failed = system(command.c_str());
        program->log += slurp(base + ".log");
        unlink((base + ".cpp").c_str());
        unlink((base + ".log").c_str());
        if (failed) return kCompilation;
        rename((base + ".so").c_str(), library.c_str());
    }
    program->image = "//CUDA-EMU-IMAGE " + library + "\n";
    return kSuccess;
}

static int size_of(const std::string& text, size_t* size) {
    *size = text.size() + 1;
    return kSuccess;
}
static int copy(const std::string& text, char* to) {
    memcpy(to, text.c_str(), text.size() + 1);
    return kSuccess;
}
static int image_size(Program* program, size_t* size) {
    return program->image.empty() ? (int)kInvalidProgram : size_of(program->image, size);
}
static int image(Program* program, char* to) { return program->image.empty() ? (int)kInvalidProgram : copy(program->image, to); }
EXPORT int nvrtcGetPTXSize(Program* program, size_t* size) { return image_size(program, size); }
EXPORT int nvrtcGetPTX(Program* program, char* to) { return image(program, to); }
EXPORT int nvrtcGetCUBINSize(Program* program, size_t* size) { return image_size(program, size); }
EXPORT int nvrtcGetCUBIN(Program* program, char* to) { return image(program, to); }
EXPORT int nvrtcGetProgramLogSize(Program* program, size_t* size) { return size_of(program->log, size); }
EXPORT int nvrtcGetProgramLog(Program* program, char* to) { return copy(program->log, to); }

#define REFUSED(name)                                                                     \
    EXPORT int name() {                                                                   \
        fprintf(stderr, "cuda-double: " #name " is not supported (tests/cuda-double)\n"); \
        return 11; /* NVRTC_ERROR_INTERNAL_ERROR */                                       \
    }
REFUSED(nvrtcAddNameExpression)
REFUSED(nvrtcGetLoweredName)
REFUSED(nvrtcGetLTOIRSize)
REFUSED(nvrtcGetLTOIR)
REFUSED(nvrtcGetOptiXIRSize)
REFUSED(nvrtcGetOptiXIR)
