// Stands for torch's header of this name: all of it is in upstream_lists.h.
#pragma once
#include "../../upstream_lists.h"
