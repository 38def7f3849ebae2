// Reads PTX: NVRTC's text becomes kernels, whose instructions name rows.
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "ptx.h"

namespace ptx {

static const Forms& forms() {
    static const Forms all = [] {
        Forms all;
        add_arithmetic(all);
        add_memory(all);
        add_warps(all);
        all["bra"] = all["bra.uni"] = {nullptr, "l", Kind::kBranch, {}};
        all["ret"] = all["exit"] = {nullptr, "", Kind::kReturn, {}};
        all["bar.sync"] = {nullptr, "n", Kind::kBarrier, {}};
        return all;
    }();
    return all;
}

static std::string trimmed(const std::string& text) {
    const size_t from = text.find_first_not_of(" \t"), to = text.find_last_not_of(" \t");
    return from == std::string::npos ? "" : text.substr(from, to + 1 - from);
}

// A list's parts: operands, of which those in { } and those with a | between count each, and what is in [ ] is one.
static std::vector<std::string> parts(const std::string& text) {
    std::vector<std::string> all;
    std::string part;
    auto end = [&] {
        part = trimmed(part);
        if (!part.empty()) all.push_back(part);
        part.clear();
    };
    for (char letter : text) {
        if (strchr(",{}|", letter)) end();
        else part += letter;
    }
    end();
    return all;
}

namespace {

class Reader {
public:
    explicit Reader(Kernel& kernel) : kernel(kernel) { kernel.row_bytes = 256; }  // row 0: zeros, where an address has no register

    void parameter(const std::string& declaration) {
        // .param [.ptr ...] [.align N] .TYPE NAME[[BYTES]]
        unsigned align = 0, bytes = 0;
        std::string word, name;
        for (std::istringstream words(declaration); words >> word;) {
            if (word == ".align") words >> align;
            else if (unsigned width = type_bytes(word)) bytes = width;
            else if (word[0] != '.') name = word;
            else if (word != ".param" && word != ".ptr" && word != ".global") unknown(declaration);
        }
        if (!align) align = bytes;
        if (size_t bracket = name.find('['); bracket != std::string::npos) {
            bytes = atoi(name.c_str() + bracket + 1);
            name.resize(bracket);
        }
        if (!bytes) unknown(declaration);
        unsigned& end = kernel.parameter_bytes;
        end = (end + align - 1) / align * align;
        symbols[name] = end;
        kernel.sizes.push_back(bytes);
        kernel.offsets.push_back(end);
        kernel.pointers.push_back(0);
        end += bytes;
    }

    void line(const std::string& text, int number) {
        at = number;
        if (text.back() == ':') {
            labels[text.substr(0, text.size() - 1)] = (int)kernel.code.size();
        } else if (text[0] == '.') {
            directive(text);
        } else if (text.back() == ';') {
            instruction(text.substr(0, text.size() - 1));
        } else {
            unknown(text);
        }
    }

    void end() {
        for (auto& [instruction, label] : branches) {
            auto found = labels.find(label);
            at = kernel.code[instruction].line;
            if (found == labels.end()) unknown(label);
            kernel.code[instruction].number = found->second;
        }
        if (kernel.code.empty() || (kernel.code.back().kind != Kind::kReturn && kernel.code.back().kind != Kind::kBranch))
            unknown("the end, without ret");
    }

    void bounds(const std::string& text) {
        int x = 1, y = 1, z = 1;
        sscanf(text.c_str() + strcspn(text.c_str(), " \t"), " %d , %d , %d", &x, &y, &z);
        kernel.max_threads = x * y * z;
    }

private:
    Kernel& kernel;
    int at = 0;
    struct Row {
        uint32_t at;
        int bytes;  // 0: predicates
    };
    std::map<std::string, Row> registers;
    std::map<std::string, uint64_t> symbols;  // where parameters and shared variables lie
    std::map<std::pair<int, uint64_t>, uint32_t> constants;
    std::map<std::string, int> labels;
    std::vector<std::pair<size_t, std::string>> branches;
    uint32_t shared_bytes = 0;

    [[noreturn]] void unknown(const std::string& what) const {
        throw std::runtime_error("PTX line " + std::to_string(at) + " of kernel " + kernel.name +
                                 ": expected PTX that tests/cuda-double/ptx knows, found: " + what);
    }

    static unsigned type_bytes(const std::string& type) {
        static const std::map<std::string, unsigned> bytes = {{".b8", 1},  {".u8", 1},  {".s8", 1},  {".b16", 2}, {".u16", 2}, {".s16", 2},
                                                              {".b32", 4}, {".u32", 4}, {".s32", 4}, {".f32", 4}, {".b64", 8}, {".u64", 8},
                                                              {".s64", 8}, {".f64", 8}};
        auto found = bytes.find(type);
        return found == bytes.end() ? 0 : found->second;
    }

    uint32_t new_row(int bytes) {
        const uint32_t at = kernel.row_bytes;
        kernel.row_bytes += kLanes * (bytes ? bytes : 4);
        return at;
    }

    void directive(const std::string& text) {
        char type[8], name[256];
        unsigned align, count;
        if (sscanf(text.c_str(), ".reg .%7s %255[^<]<%u>;", type, name, &count) == 3) {
            const int bytes = strcmp(type, "pred") ? type_bytes(std::string(".") + type) : 0;
            if (bytes == 1 || (!bytes && strcmp(type, "pred"))) unknown(text);
            for (unsigned i = 0; i < count; i++) registers[name + std::to_string(i)] = {new_row(bytes), bytes};
        } else if (sscanf(text.c_str(), ".reg .%7s %255[^<;];", type, name) == 2 && type_bytes(std::string(".") + type) == 8) {
            registers[name] = {new_row(8), 8};
        } else if (sscanf(text.c_str(), ".local .align %u .b8 %255[^[][%u];", &align, name, &count) == 3 && !kernel.local_bytes && align <= 16) {
            symbols[name] = 0;
            kernel.local_bytes = (count + 15) / 16 * 16;
        } else if (sscanf(text.c_str(), ".shared .align %u .%7s %255[^[;][%u];", &align, type, name, &count) == 4 ||
                   (count = 1, sscanf(text.c_str(), ".shared .align %u .%7s %255[^[;];", &align, type, name) == 3)) {
            const uint32_t bytes = count * type_bytes(std::string(".") + type);
            // 64 bytes of nobody's lie between variables.
            const uint32_t from = (shared_bytes + (shared_bytes ? 64 : 0) + 15) / 16 * 16;
            if (!bytes || align > 16 || from + bytes > (uint32_t)kMostShared) unknown(text);
            symbols[name] = from;
            kernel.shared.push_back({from, bytes});
            shared_bytes = from + (bytes + 3) / 4 * 4;
        } else if (text.rfind(".pragma", 0) && text.rfind(".loc", 0) && text.rfind(".file", 0)) {
            unknown(text);
        }
    }

    // A literal's bits, for an operand of so many bytes (0: a predicate).
    bool literal(const std::string& text, int bytes, uint64_t& value) const {
        char* end;
        const bool is_float = text.size() > 2 && text[0] == '0' && strchr("fFdD", text[1]);
        if (is_float) {
            value = strtoull(text.c_str() + 2, &end, 16);
            return !*end && text.size() == (bytes == 4 ? 10 : bytes == 8 ? 18 : 0);
        }
        if (text == "WARP_SZ") return value = kLanes, true;
        if (auto found = symbols.find(text); found != symbols.end()) return value = found->second, bytes >= 4;
        const char* digits = text.c_str() + (text[0] == '-');
        if (!(*digits >= '0' && *digits <= '9')) return false;
        value = strtoull(digits, &end, 0);
        if (*digits != text[0]) value = 0 - value;
        if (!bytes) value = value ? ~0u : 0;
        return !*end || !strcmp(end, "U");
    }

    uint32_t constant(uint64_t value, int bytes) {
        auto [found, is_new] = constants.try_emplace({bytes, value}, 0);
        if (is_new) {
            found->second = new_row(bytes);
            kernel.constants.push_back({found->second, bytes ? bytes : 4, value});
        }
        return found->second;
    }

    uint32_t row(const std::string& operand, int bytes) {
        if (auto found = registers.find(operand); found != registers.end()) {
            if (found->second.bytes != bytes) unknown("an operand of another width: " + operand);
            return found->second.at;
        }
        static const char* specials[] = {"%tid.x",    "%tid.y",    "%tid.z",    "%ntid.x",   "%ntid.y",   "%ntid.z",  "%ctaid.x",
                                         "%ctaid.y",  "%ctaid.z",  "%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid"};
        for (const char* special : specials) {
            if (operand != special || bytes != 4) continue;
            auto [found, is_new] = kernel.specials.try_emplace(operand, 0);
            if (is_new) found->second = new_row(4);
            return found->second;
        }
        uint64_t value;
        if (!literal(operand, bytes, value)) unknown(operand);
        return constant(value, bytes);
    }

    void address(const std::string& operand, Instruction& in, int which) {
        if (operand.size() < 3 || operand[0] != '[' || operand.back() != ']') unknown(operand);
        std::string base = trimmed(operand.substr(1, operand.size() - 2));
        auto& own = in.address[which];
        if (size_t plus = base.find('+'); plus != std::string::npos) {
            own.offset = strtoll(base.c_str() + plus + 1, nullptr, 0);
            base = trimmed(base.substr(0, plus));
        }
        uint64_t value;
        if (auto found = registers.find(base); found != registers.end()) {
            own.row = found->second.at;
            own.narrow = found->second.bytes == 4;
            if (!own.narrow && found->second.bytes != 8) unknown(operand);
        } else if (literal(base, 8, value)) {
            own.offset += (int64_t)value;
        } else {
            unknown(operand);
        }
    }

    void instruction(const std::string& text) {
        Instruction in;
        in.line = at;
        in.place = (int)kernel.code.size();
        std::string rest = text;
        if (rest[0] == '@') {
            const size_t space = rest.find_first_of(" \t");
            in.negated = rest[1] == '!';
            in.guard = row(rest.substr(1 + in.negated, space - 1 - in.negated), 0);
            rest = trimmed(rest.substr(space));
        }
        const size_t space = std::min(rest.find_first_of(" \t"), rest.size());
        std::string opcode = rest.substr(0, space);
        const std::string given = trimmed(rest.substr(space));
        const std::vector<std::string> operands = parts(given);
        if (given.find('|') != std::string::npos) opcode += "|p";
        if (opcode.rfind("mov.", 0) == 0 && operands.size() == 3) opcode += given[0] == '{' ? ":unpack" : ":pack";
        if (opcode.rfind("cvt.", 0) == 0 && operands.size() == 2) {
            auto own = registers.find(operands[1]);
            if (own != registers.end() && own->second.bytes == 8 && forms().count(opcode + ":d")) opcode += ":d";
        }
        auto found = forms().find(opcode);
        if (found == forms().end()) unknown(text);
        const Form& form = found->second;
        if (operands.size() != form.operands.size()) unknown(text);
        in.run = form.run;
        in.kind = form.kind;
        int rows = 0, addresses = 0, width = 0;
        // The width of registers whose form leaves it open; what is no register takes it over.
        for (size_t i = 0; i < operands.size(); i++) {
            auto own = registers.find(operands[i]);
            if (form.operands[i] == 'r' && own != registers.end()) width = own->second.bytes;
        }
        if (!form.run && form.operands.find('r') != std::string::npos) {
            if (!width) width = form.by_width[0] ? 2 : form.by_width[1] ? 4 : 8;
            in.run = form.by_width[width == 2 ? 0 : width == 4 ? 1 : 2];
            if (!in.run) unknown(text);
        }
        for (size_t i = 0; i < operands.size(); i++) {
            uint64_t value;
            switch (form.operands[i]) {
                case 'p': in.row[rows++] = row(operands[i], 0); break;
                case 'h': in.row[rows++] = row(operands[i], 2); break;
                case 'w': in.row[rows++] = row(operands[i], 4); break;
                case 'd': in.row[rows++] = row(operands[i], 8); break;
                case 'r': in.row[rows++] = row(operands[i], width), in.count = rows; break;
                case 'a': address(operands[i], in, addresses++); break;
                case 'l': branches.emplace_back(in.place, operands[i]); break;
                default:
                    if (!literal(operands[i], 8, value)) unknown(text);
                    in.number = (int)value;
            }
        }
        // Barriers other than the block's own are not known.
        if (in.kind == Kind::kBarrier && in.number) unknown(text);
        kernel.code.push_back(in);
    }
};

}  // namespace

void read_module(const char* text, Module& module) {
    std::istringstream all(text);
    for (std::string line; std::getline(all, line);) module.lines.push_back(trimmed(line.substr(0, line.find("//"))));
    std::vector<Reader> readers;
    size_t count = 0;
    for (auto& line : module.lines) count += line.rfind(".visible .entry", 0) == 0;
    module.kernels.reserve(count);  // readers point to kernels
    readers.reserve(count);
    enum { kOutside, kParameters, kHead, kBody } where = kOutside;
    for (size_t i = 0; i < module.lines.size(); i++) {
        const std::string& line = module.lines[i];
        if (line.empty()) continue;
        switch (where) {
            case kOutside:
                // Constants of C++ that are no kernel's stay unread: a kernel that names one is refused.
                if (line.rfind(".visible .entry", 0)) break;
                module.kernels.emplace_back();
                module.kernels.back().name = trimmed(line.substr(15, line.find('(') - 15));
                readers.emplace_back(module.kernels.back());
                where = line.find(')') == std::string::npos ? kParameters : kHead;
                break;
            case kParameters:
                if (line[0] == ')') where = kHead;
                else readers.back().parameter(line.substr(0, line.find(',')));
                break;
            case kHead:
                if (line.rfind(".maxntid", 0) == 0 || line.rfind(".reqntid", 0) == 0) readers.back().bounds(line);
                else if (line[0] == '{') where = kBody;
                break;
            case kBody:
                if (line[0] == '}') readers.back().end(), where = kOutside;
                else readers.back().line(line, (int)i + 1);
        }
    }
    for (Kernel& kernel : module.kernels) {
        kernel.lines = &module.lines;
        module.table.push_back({kernel.name.c_str(), nullptr, (unsigned)kernel.sizes.size(), kernel.sizes.data(), kernel.pointers.data(),
                                kernel.max_threads, &kernel});
    }
    module.table.push_back({});
}

}  // namespace ptx
