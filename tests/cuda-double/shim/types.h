// CUDA's vector types, with CUDA's alignments.
#pragma once

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

#define EMU_VECTORS(T, name)                                                      \
    struct alignas(2 * sizeof(T)) name##2 { T x, y; };                            \
    struct alignas(sizeof(T) > 4 ? 16 : 4 * sizeof(T)) name##4 { T x, y, z, w; }; \
    static inline name##2 make_##name##2(T x, T y) { return {x, y}; }             \
    static inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
EMU_VECTORS(float, float)
EMU_VECTORS(double, double)
EMU_VECTORS(int, int)
EMU_VECTORS(unsigned, uint)
EMU_VECTORS(short, short)
EMU_VECTORS(unsigned short, ushort)
EMU_VECTORS(signed char, char)
EMU_VECTORS(unsigned char, uchar)
EMU_VECTORS(long long, longlong)
EMU_VECTORS(unsigned long long, ulonglong)
#undef EMU_VECTORS

struct float3 {
    float x, y, z;
};
struct int3 {
    int x, y, z;
};
static inline float3 make_float3(float x, float y, float z) { return {x, y, z}; }
static inline int3 make_int3(int x, int y, int z) { return {x, y, z}; }
static inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
