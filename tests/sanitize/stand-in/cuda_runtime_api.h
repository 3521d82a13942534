// Stands for CUDA's header of this name: all of it is in runtime.h.
#pragma once
#include "runtime.h"
