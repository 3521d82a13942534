// The newest release without private pools and history: what stands in for torch has neither.
#pragma once
#define TORCH_VERSION "2.9.0"
#define TORCH_VERSION_MAJOR 2
#define TORCH_VERSION_MINOR 9
