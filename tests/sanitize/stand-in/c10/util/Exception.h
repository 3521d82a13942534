// Stands for torch's header of this name: all of it is in types.h.
#pragma once
#include "../../types.h"
