// CUDA C++ for g++: goes in front of a preprocessed kernel source. One copy of everything here belongs to each compiled source.
#pragma once
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <type_traits>
#include <utility>

#include "types.h"
#include "scheduler.h"
#include "device.h"
#include "launch.h"
