/* A program as a user of the CUDA runtime writes it, compiled against real CUDA 12 and 13 headers:
 * the layouts and argument lists that differ between the two are those that the simulator uses.
 * abi.rs builds and runs it; it prints "ok" or the line that went wrong. */

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

#define BYTES 4096
#define GUARD 0x5a
#define REQUIRE(condition)                                   \
  do {                                                       \
    if (!(condition)) {                                      \
      printf("line %d: %s\n", __LINE__, #condition);         \
      return 1;                                              \
    }                                                        \
  } while (0)
#define CALL(call) REQUIRE((call) == cudaSuccess)

#if CUDART_VERSION >= 13000
#define NO_EDGES NULL,
#define CAPTURE_INFO_V3 cudaStreamGetCaptureInfo
#else
#define NO_EDGES
#define CAPTURE_INFO_V3 cudaStreamGetCaptureInfo_v3
#endif

static int versions_and_properties(void) {
  int driver, runtime, bus, devices;
  struct {
    struct cudaDeviceProp it;
    unsigned char guard[64];
  } place;
  memset(&place, GUARD, sizeof place);
  CALL(cudaGetDeviceCount(&devices));
  CALL(cudaDriverGetVersion(&driver));
  CALL(cudaRuntimeGetVersion(&runtime));
  REQUIRE(devices == 2 && driver / 1000 == CUDART_VERSION / 1000 && runtime == driver);
  CALL(cudaGetDeviceProperties(&place.it, 1));
  REQUIRE(strcmp(place.it.name, "pinbuddy simulated GPU") == 0);
  REQUIRE(place.it.major == 9 && place.it.multiProcessorCount == 132);
  REQUIRE(place.it.hostRegisterSupported == 1 && place.it.clusterLaunch == 0);
  for (size_t i = 0; i < sizeof place.guard; i++) REQUIRE(place.guard[i] == GUARD);
  CALL(cudaDeviceGetAttribute(&bus, cudaDevAttrPciBusId, 1));
  REQUIRE(bus == place.it.pciBusID);
  return 0;
}

static int pointers(char* host, char* device) {
  struct {
    struct cudaPointerAttributes it;
    unsigned char guard[64];
  } place;
  memset(&place, GUARD, sizeof place);
  CALL(cudaPointerGetAttributes(&place.it, host + 5));
  REQUIRE(place.it.type == cudaMemoryTypeHost && place.it.hostPointer == host + 5);
  CALL(cudaPointerGetAttributes(&place.it, device + 5));
  REQUIRE(place.it.type == cudaMemoryTypeDevice && place.it.devicePointer == device + 5);
  CALL(cudaPointerGetAttributes(&place.it, &place));
  REQUIRE(place.it.type == cudaMemoryTypeUnregistered);
  for (size_t i = 0; i < sizeof place.guard; i++) REQUIRE(place.guard[i] == GUARD);
  return 0;
}

static int capture(char* host, char* device) {
  cudaStream_t stream;
  enum cudaStreamCaptureStatus status;
  unsigned long long id;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  const cudaGraphNode_t* nodes;
  cudaGraphNode_t last;
  size_t count = 0, all = 0;
  char back[BYTES];
  CALL(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CALL(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CALL(cudaMemsetAsync(device, 1, BYTES, stream));
  CALL(cudaMemcpyAsync(device, host, BYTES, cudaMemcpyHostToDevice, stream));
  CALL(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, NO_EDGES & count));
  REQUIRE(status == cudaStreamCaptureStatusActive && id != 0 && graph != NULL && count == 1);
  last = nodes[0];
  CALL(cudaStreamUpdateCaptureDependencies(stream, &last, NO_EDGES 1,
                                           cudaStreamSetCaptureDependencies));
  CALL(CAPTURE_INFO_V3(stream, &status, &id, &graph, &nodes, NULL, &count));
  REQUIRE(count == 1 && nodes[0] == last);
  CALL(cudaGraphNodeGetDependencies(last, NULL, NO_EDGES & count));
  REQUIRE(count == 1);
  CALL(cudaStreamEndCapture(stream, &graph));
  CALL(cudaGraphGetNodes(graph, NULL, &all));
  REQUIRE(all == 2);
  CALL(cudaGraphInstantiate(&exec, graph, 0));
  memset(host, 3, BYTES);
  CALL(cudaGraphLaunch(exec, stream));
  CALL(cudaStreamSynchronize(stream));
  CALL(cudaMemcpy(back, device, BYTES, cudaMemcpyDeviceToHost));
  REQUIRE(back[0] == 3 && back[BYTES - 1] == 3);
  CALL(cudaGraphExecDestroy(exec));
  CALL(cudaGraphDestroy(graph));
  CALL(cudaStreamDestroy(stream));
  return 0;
}

static int events_and_errors(void) {
  cudaEvent_t start, end;
  cudaMemPool_t pool;
  float milliseconds = -1;
  CALL(cudaEventCreate(&start));
  CALL(cudaEventCreate(&end));
  CALL(cudaEventRecord(start, 0));
  CALL(cudaEventRecord(end, 0));
  CALL(cudaEventElapsedTime(&milliseconds, start, end));
  REQUIRE(milliseconds >= 0);
  CALL(cudaEventDestroy(start));
  REQUIRE(cudaEventQuery(start) == cudaErrorInvalidResourceHandle);
  REQUIRE(cudaDeviceGetDefaultMemPool(&pool, 0) == cudaErrorNotSupported);
  REQUIRE(cudaPeekAtLastError() == cudaErrorNotSupported);
  REQUIRE(cudaGetLastError() == cudaErrorNotSupported);
  CALL(cudaGetLastError());
  return 0;
}

int main(void) {
  char *host, *device;
  if (versions_and_properties()) return 1;
  CALL(cudaHostAlloc((void**)&host, BYTES, cudaHostAllocPortable));
  CALL(cudaMalloc((void**)&device, BYTES));
  if (pointers(host, device) || capture(host, device) || events_and_errors()) return 1;
  CALL(cudaFreeHost(host));
  CALL(cudaFree(device));
  puts("ok");
  return 0;
}
