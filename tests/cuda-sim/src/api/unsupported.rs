//! Entry points that PyTorch and its libraries import, and some that they do not, and that are not simulated.
//!
//! They answer `cudaErrorNotSupported` and store it, as CUDA does on a device without the feature.
//! Any other name reaches libcudart, which answers that it has no driver.

use crate::error::Error;

/// Define entry points that only refuse. Their arguments are not looked at, so they are not
/// declared; the C calling convention leaves arguments to the caller.
macro_rules! refuse {
    ($($name:ident)*) => {
        entries! { $(fn $name() { Err(Error::cudaErrorNotSupported) })* }
    };
}

// Managed memory and hints about it.
refuse! { cudaMallocManaged cudaMemAdvise cudaMemPrefetchAsync cudaMemPrefetchAsync_v2 }

// Memory pools.
refuse! {
    cudaDeviceGetDefaultMemPool cudaDeviceGetMemPool cudaDeviceSetMemPool cudaMallocFromPoolAsync
    cudaMemPoolCreate cudaMemPoolDestroy cudaMemPoolExportPointer
    cudaMemPoolExportToShareableHandle cudaMemPoolGetAccess cudaMemPoolGetAttribute
    cudaMemPoolImportFromShareableHandle cudaMemPoolImportPointer cudaMemPoolSetAccess
    cudaMemPoolSetAttribute cudaMemPoolTrimTo cudaDeviceGetGraphMemAttribute
    cudaDeviceSetGraphMemAttribute cudaDeviceGraphMemTrim
}

// Sharing between processes.
refuse! {
    cudaIpcCloseMemHandle cudaIpcGetEventHandle cudaIpcGetMemHandle cudaIpcOpenEventHandle
    cudaIpcOpenMemHandle
}

// Code loaded at run time.
refuse! {
    cudaLibraryEnumerateKernels cudaLibraryGetGlobal cudaLibraryGetKernel
    cudaLibraryGetKernelCount cudaLibraryGetManaged cudaLibraryGetUnifiedFunction
    cudaLibraryLoadData cudaLibraryLoadFromFile cudaLibraryUnload cudaGetFuncBySymbol
}

// Graphs that are built or changed by hand, and capture into one.
refuse! {
    cudaGraphAddNode cudaGraphAddNode_v2 cudaGraphConditionalHandleCreate
    cudaGraphConditionalHandleCreate_v2 cudaGraphExecUpdate cudaGraphInstantiateWithParams
    cudaGraphDebugDotPrint cudaStreamBeginCaptureToGraph cudaGraphKernelNodeGetParams
    cudaGraphKernelNodeSetParams
}

// What other programs may call: no release of PyTorch imports it.
refuse! {
    cudaMemcpy2D cudaMemset2D cudaMemset2DAsync cudaMemcpyPeer cudaMemcpyFromSymbol
    cudaMemcpyFromSymbolAsync cudaMemcpyToSymbolAsync cudaGetSymbolSize cudaGraphGetRootNodes
    cudaGraphNodeGetType cudaGraphUpload cudaGraphCreate cudaUserObjectRetain cudaStreamGetDevice
    cudaStreamGetFlags cudaStreamGetId cudaDeviceGetByPCIBusId cudaDeviceDisablePeerAccess
    cudaSetDeviceFlags cudaGetDeviceFlags cudaHostGetFlags cudaFuncSetCacheConfig
}

// Copies of other shapes.
refuse! {
    cudaMemcpy3D cudaMemcpy3DAsync cudaMemcpy3DPeer cudaMemcpy3DPeerAsync cudaMemcpyBatchAsync
    cudaMemcpy3DBatchAsync
}
