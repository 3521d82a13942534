//! CUDA's types as bindgen reads them; `tests/bindings_current.rs` keeps them so.

#[derive(PartialEq, Eq, Copy, Clone, Debug, Hash)]
#[repr(C, align(8))]
pub struct __BindgenOpaqueArray8<T>(pub T);
impl<T: Copy + Default, const N: usize> Default for __BindgenOpaqueArray8<[T; N]> {
    fn default() -> Self {
        Self([<T as Default>::default(); N])
    }
}
pub const CUDART_VERSION: u32 = 13020;
pub const cudaHostAllocDefault: u32 = 0;
pub const cudaHostAllocPortable: u32 = 1;
pub const cudaHostAllocMapped: u32 = 2;
pub const cudaHostAllocWriteCombined: u32 = 4;
pub const cudaHostRegisterDefault: u32 = 0;
pub const cudaHostRegisterPortable: u32 = 1;
pub const cudaHostRegisterMapped: u32 = 2;
pub const cudaHostRegisterIoMemory: u32 = 4;
pub const cudaHostRegisterReadOnly: u32 = 8;
pub const cudaStreamNonBlocking: u32 = 1;
pub const cudaEventDisableTiming: u32 = 2;
pub const cudaEventInterprocess: u32 = 4;
pub const cudaEventRecordExternal: u32 = 1;
pub const cudaEventWaitExternal: u32 = 1;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct dim3 {
    pub x: ::std::os::raw::c_uint,
    pub y: ::std::os::raw::c_uint,
    pub z: ::std::os::raw::c_uint,
}
impl cudaError {
    pub const cudaSuccess: cudaError = cudaError(0);
    pub const cudaErrorInvalidValue: cudaError = cudaError(1);
    pub const cudaErrorMemoryAllocation: cudaError = cudaError(2);
    pub const cudaErrorInitializationError: cudaError = cudaError(3);
    pub const cudaErrorCudartUnloading: cudaError = cudaError(4);
    pub const cudaErrorProfilerDisabled: cudaError = cudaError(5);
    pub const cudaErrorProfilerNotInitialized: cudaError = cudaError(6);
    pub const cudaErrorProfilerAlreadyStarted: cudaError = cudaError(7);
    pub const cudaErrorProfilerAlreadyStopped: cudaError = cudaError(8);
    pub const cudaErrorInvalidConfiguration: cudaError = cudaError(9);
    pub const cudaErrorVersionTranslation: cudaError = cudaError(10);
    pub const cudaErrorInvalidPitchValue: cudaError = cudaError(12);
    pub const cudaErrorInvalidSymbol: cudaError = cudaError(13);
    pub const cudaErrorInvalidHostPointer: cudaError = cudaError(16);
    pub const cudaErrorInvalidDevicePointer: cudaError = cudaError(17);
    pub const cudaErrorInvalidTexture: cudaError = cudaError(18);
    pub const cudaErrorInvalidTextureBinding: cudaError = cudaError(19);
    pub const cudaErrorInvalidChannelDescriptor: cudaError = cudaError(20);
    pub const cudaErrorInvalidMemcpyDirection: cudaError = cudaError(21);
    pub const cudaErrorAddressOfConstant: cudaError = cudaError(22);
    pub const cudaErrorTextureFetchFailed: cudaError = cudaError(23);
    pub const cudaErrorTextureNotBound: cudaError = cudaError(24);
    pub const cudaErrorSynchronizationError: cudaError = cudaError(25);
    pub const cudaErrorInvalidFilterSetting: cudaError = cudaError(26);
    pub const cudaErrorInvalidNormSetting: cudaError = cudaError(27);
    pub const cudaErrorMixedDeviceExecution: cudaError = cudaError(28);
    pub const cudaErrorNotYetImplemented: cudaError = cudaError(31);
    pub const cudaErrorMemoryValueTooLarge: cudaError = cudaError(32);
    pub const cudaErrorStubLibrary: cudaError = cudaError(34);
    pub const cudaErrorInsufficientDriver: cudaError = cudaError(35);
    pub const cudaErrorCallRequiresNewerDriver: cudaError = cudaError(36);
    pub const cudaErrorInvalidSurface: cudaError = cudaError(37);
    pub const cudaErrorDuplicateVariableName: cudaError = cudaError(43);
    pub const cudaErrorDuplicateTextureName: cudaError = cudaError(44);
    pub const cudaErrorDuplicateSurfaceName: cudaError = cudaError(45);
    pub const cudaErrorDevicesUnavailable: cudaError = cudaError(46);
    pub const cudaErrorIncompatibleDriverContext: cudaError = cudaError(49);
    pub const cudaErrorMissingConfiguration: cudaError = cudaError(52);
    pub const cudaErrorPriorLaunchFailure: cudaError = cudaError(53);
    pub const cudaErrorLaunchMaxDepthExceeded: cudaError = cudaError(65);
    pub const cudaErrorLaunchFileScopedTex: cudaError = cudaError(66);
    pub const cudaErrorLaunchFileScopedSurf: cudaError = cudaError(67);
    pub const cudaErrorSyncDepthExceeded: cudaError = cudaError(68);
    pub const cudaErrorLaunchPendingCountExceeded: cudaError = cudaError(69);
    pub const cudaErrorInvalidDeviceFunction: cudaError = cudaError(98);
    pub const cudaErrorNoDevice: cudaError = cudaError(100);
    pub const cudaErrorInvalidDevice: cudaError = cudaError(101);
    pub const cudaErrorDeviceNotLicensed: cudaError = cudaError(102);
    pub const cudaErrorSoftwareValidityNotEstablished: cudaError = cudaError(103);
    pub const cudaErrorStartupFailure: cudaError = cudaError(127);
    pub const cudaErrorInvalidKernelImage: cudaError = cudaError(200);
    pub const cudaErrorDeviceUninitialized: cudaError = cudaError(201);
    pub const cudaErrorMapBufferObjectFailed: cudaError = cudaError(205);
    pub const cudaErrorUnmapBufferObjectFailed: cudaError = cudaError(206);
    pub const cudaErrorArrayIsMapped: cudaError = cudaError(207);
    pub const cudaErrorAlreadyMapped: cudaError = cudaError(208);
    pub const cudaErrorNoKernelImageForDevice: cudaError = cudaError(209);
    pub const cudaErrorAlreadyAcquired: cudaError = cudaError(210);
    pub const cudaErrorNotMapped: cudaError = cudaError(211);
    pub const cudaErrorNotMappedAsArray: cudaError = cudaError(212);
    pub const cudaErrorNotMappedAsPointer: cudaError = cudaError(213);
    pub const cudaErrorECCUncorrectable: cudaError = cudaError(214);
    pub const cudaErrorUnsupportedLimit: cudaError = cudaError(215);
    pub const cudaErrorDeviceAlreadyInUse: cudaError = cudaError(216);
    pub const cudaErrorPeerAccessUnsupported: cudaError = cudaError(217);
    pub const cudaErrorInvalidPtx: cudaError = cudaError(218);
    pub const cudaErrorInvalidGraphicsContext: cudaError = cudaError(219);
    pub const cudaErrorNvlinkUncorrectable: cudaError = cudaError(220);
    pub const cudaErrorJitCompilerNotFound: cudaError = cudaError(221);
    pub const cudaErrorUnsupportedPtxVersion: cudaError = cudaError(222);
    pub const cudaErrorJitCompilationDisabled: cudaError = cudaError(223);
    pub const cudaErrorUnsupportedExecAffinity: cudaError = cudaError(224);
    pub const cudaErrorUnsupportedDevSideSync: cudaError = cudaError(225);
    pub const cudaErrorContained: cudaError = cudaError(226);
    pub const cudaErrorInvalidSource: cudaError = cudaError(300);
    pub const cudaErrorFileNotFound: cudaError = cudaError(301);
    pub const cudaErrorSharedObjectSymbolNotFound: cudaError = cudaError(302);
    pub const cudaErrorSharedObjectInitFailed: cudaError = cudaError(303);
    pub const cudaErrorOperatingSystem: cudaError = cudaError(304);
    pub const cudaErrorInvalidResourceHandle: cudaError = cudaError(400);
    pub const cudaErrorIllegalState: cudaError = cudaError(401);
    pub const cudaErrorLossyQuery: cudaError = cudaError(402);
    pub const cudaErrorSymbolNotFound: cudaError = cudaError(500);
    pub const cudaErrorNotReady: cudaError = cudaError(600);
    pub const cudaErrorIllegalAddress: cudaError = cudaError(700);
    pub const cudaErrorLaunchOutOfResources: cudaError = cudaError(701);
    pub const cudaErrorLaunchTimeout: cudaError = cudaError(702);
    pub const cudaErrorLaunchIncompatibleTexturing: cudaError = cudaError(703);
    pub const cudaErrorPeerAccessAlreadyEnabled: cudaError = cudaError(704);
    pub const cudaErrorPeerAccessNotEnabled: cudaError = cudaError(705);
    pub const cudaErrorSetOnActiveProcess: cudaError = cudaError(708);
    pub const cudaErrorContextIsDestroyed: cudaError = cudaError(709);
    pub const cudaErrorAssert: cudaError = cudaError(710);
    pub const cudaErrorTooManyPeers: cudaError = cudaError(711);
    pub const cudaErrorHostMemoryAlreadyRegistered: cudaError = cudaError(712);
    pub const cudaErrorHostMemoryNotRegistered: cudaError = cudaError(713);
    pub const cudaErrorHardwareStackError: cudaError = cudaError(714);
    pub const cudaErrorIllegalInstruction: cudaError = cudaError(715);
    pub const cudaErrorMisalignedAddress: cudaError = cudaError(716);
    pub const cudaErrorInvalidAddressSpace: cudaError = cudaError(717);
    pub const cudaErrorInvalidPc: cudaError = cudaError(718);
    pub const cudaErrorLaunchFailure: cudaError = cudaError(719);
    pub const cudaErrorCooperativeLaunchTooLarge: cudaError = cudaError(720);
    pub const cudaErrorTensorMemoryLeak: cudaError = cudaError(721);
    pub const cudaErrorNotPermitted: cudaError = cudaError(800);
    pub const cudaErrorNotSupported: cudaError = cudaError(801);
    pub const cudaErrorSystemNotReady: cudaError = cudaError(802);
    pub const cudaErrorSystemDriverMismatch: cudaError = cudaError(803);
    pub const cudaErrorCompatNotSupportedOnDevice: cudaError = cudaError(804);
    pub const cudaErrorMpsConnectionFailed: cudaError = cudaError(805);
    pub const cudaErrorMpsRpcFailure: cudaError = cudaError(806);
    pub const cudaErrorMpsServerNotReady: cudaError = cudaError(807);
    pub const cudaErrorMpsMaxClientsReached: cudaError = cudaError(808);
    pub const cudaErrorMpsMaxConnectionsReached: cudaError = cudaError(809);
    pub const cudaErrorMpsClientTerminated: cudaError = cudaError(810);
    pub const cudaErrorCdpNotSupported: cudaError = cudaError(811);
    pub const cudaErrorCdpVersionMismatch: cudaError = cudaError(812);
    pub const cudaErrorStreamCaptureUnsupported: cudaError = cudaError(900);
    pub const cudaErrorStreamCaptureInvalidated: cudaError = cudaError(901);
    pub const cudaErrorStreamCaptureMerge: cudaError = cudaError(902);
    pub const cudaErrorStreamCaptureUnmatched: cudaError = cudaError(903);
    pub const cudaErrorStreamCaptureUnjoined: cudaError = cudaError(904);
    pub const cudaErrorStreamCaptureIsolation: cudaError = cudaError(905);
    pub const cudaErrorStreamCaptureImplicit: cudaError = cudaError(906);
    pub const cudaErrorCapturedEvent: cudaError = cudaError(907);
    pub const cudaErrorStreamCaptureWrongThread: cudaError = cudaError(908);
    pub const cudaErrorTimeout: cudaError = cudaError(909);
    pub const cudaErrorGraphExecUpdateFailure: cudaError = cudaError(910);
    pub const cudaErrorExternalDevice: cudaError = cudaError(911);
    pub const cudaErrorInvalidClusterSize: cudaError = cudaError(912);
    pub const cudaErrorFunctionNotLoaded: cudaError = cudaError(913);
    pub const cudaErrorInvalidResourceType: cudaError = cudaError(914);
    pub const cudaErrorInvalidResourceConfiguration: cudaError = cudaError(915);
    pub const cudaErrorStreamDetached: cudaError = cudaError(917);
    pub const cudaErrorUnknown: cudaError = cudaError(999);
    pub const cudaErrorApiFailureBase: cudaError = cudaError(10000);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cudaError(pub ::std::os::raw::c_uint);
impl cudaMemoryType {
    pub const cudaMemoryTypeUnregistered: cudaMemoryType = cudaMemoryType(0);
    pub const cudaMemoryTypeHost: cudaMemoryType = cudaMemoryType(1);
    pub const cudaMemoryTypeDevice: cudaMemoryType = cudaMemoryType(2);
    pub const cudaMemoryTypeManaged: cudaMemoryType = cudaMemoryType(3);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cudaMemoryType(pub ::std::os::raw::c_uint);
impl cudaMemcpyKind {
    pub const cudaMemcpyHostToHost: cudaMemcpyKind = cudaMemcpyKind(0);
    pub const cudaMemcpyHostToDevice: cudaMemcpyKind = cudaMemcpyKind(1);
    pub const cudaMemcpyDeviceToHost: cudaMemcpyKind = cudaMemcpyKind(2);
    pub const cudaMemcpyDeviceToDevice: cudaMemcpyKind = cudaMemcpyKind(3);
    pub const cudaMemcpyDefault: cudaMemcpyKind = cudaMemcpyKind(4);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cudaMemcpyKind(pub ::std::os::raw::c_uint);
impl cudaStreamCaptureStatus {
    pub const cudaStreamCaptureStatusNone: cudaStreamCaptureStatus = cudaStreamCaptureStatus(
        0,
    );
    pub const cudaStreamCaptureStatusActive: cudaStreamCaptureStatus = cudaStreamCaptureStatus(
        1,
    );
    pub const cudaStreamCaptureStatusInvalidated: cudaStreamCaptureStatus = cudaStreamCaptureStatus(
        2,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cudaStreamCaptureStatus(pub ::std::os::raw::c_uint);
impl cudaStreamCaptureMode {
    pub const cudaStreamCaptureModeGlobal: cudaStreamCaptureMode = cudaStreamCaptureMode(
        0,
    );
    pub const cudaStreamCaptureModeThreadLocal: cudaStreamCaptureMode = cudaStreamCaptureMode(
        1,
    );
    pub const cudaStreamCaptureModeRelaxed: cudaStreamCaptureMode = cudaStreamCaptureMode(
        2,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cudaStreamCaptureMode(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaPointerAttributes {
    pub type_: cudaMemoryType,
    pub device: ::std::os::raw::c_int,
    pub devicePointer: *mut ::std::os::raw::c_void,
    pub hostPointer: *mut ::std::os::raw::c_void,
    pub reserved: [::std::os::raw::c_long; 8usize],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaFuncAttributes {
    pub sharedSizeBytes: usize,
    pub constSizeBytes: usize,
    pub localSizeBytes: usize,
    pub maxThreadsPerBlock: ::std::os::raw::c_int,
    pub numRegs: ::std::os::raw::c_int,
    pub ptxVersion: ::std::os::raw::c_int,
    pub binaryVersion: ::std::os::raw::c_int,
    pub cacheModeCA: ::std::os::raw::c_int,
    pub maxDynamicSharedSizeBytes: ::std::os::raw::c_int,
    pub preferredShmemCarveout: ::std::os::raw::c_int,
    pub clusterDimMustBeSet: ::std::os::raw::c_int,
    pub requiredClusterWidth: ::std::os::raw::c_int,
    pub requiredClusterHeight: ::std::os::raw::c_int,
    pub requiredClusterDepth: ::std::os::raw::c_int,
    pub clusterSchedulingPolicyPreference: ::std::os::raw::c_int,
    pub nonPortableClusterSizeAllowed: ::std::os::raw::c_int,
    pub reserved0: ::std::os::raw::c_int,
    pub reserved: [::std::os::raw::c_int; 15usize],
}
impl cudaDeviceAttr {
    pub const cudaDevAttrMaxThreadsPerBlock: cudaDeviceAttr = cudaDeviceAttr(1);
    pub const cudaDevAttrMaxBlockDimX: cudaDeviceAttr = cudaDeviceAttr(2);
    pub const cudaDevAttrMaxBlockDimY: cudaDeviceAttr = cudaDeviceAttr(3);
    pub const cudaDevAttrMaxBlockDimZ: cudaDeviceAttr = cudaDeviceAttr(4);
    pub const cudaDevAttrMaxGridDimX: cudaDeviceAttr = cudaDeviceAttr(5);
    pub const cudaDevAttrMaxGridDimY: cudaDeviceAttr = cudaDeviceAttr(6);
    pub const cudaDevAttrMaxGridDimZ: cudaDeviceAttr = cudaDeviceAttr(7);
    pub const cudaDevAttrMaxSharedMemoryPerBlock: cudaDeviceAttr = cudaDeviceAttr(8);
    pub const cudaDevAttrTotalConstantMemory: cudaDeviceAttr = cudaDeviceAttr(9);
    pub const cudaDevAttrWarpSize: cudaDeviceAttr = cudaDeviceAttr(10);
    pub const cudaDevAttrMaxPitch: cudaDeviceAttr = cudaDeviceAttr(11);
    pub const cudaDevAttrMaxRegistersPerBlock: cudaDeviceAttr = cudaDeviceAttr(12);
    pub const cudaDevAttrClockRate: cudaDeviceAttr = cudaDeviceAttr(13);
    pub const cudaDevAttrTextureAlignment: cudaDeviceAttr = cudaDeviceAttr(14);
    pub const cudaDevAttrGpuOverlap: cudaDeviceAttr = cudaDeviceAttr(15);
    pub const cudaDevAttrMultiProcessorCount: cudaDeviceAttr = cudaDeviceAttr(16);
    pub const cudaDevAttrKernelExecTimeout: cudaDeviceAttr = cudaDeviceAttr(17);
    pub const cudaDevAttrIntegrated: cudaDeviceAttr = cudaDeviceAttr(18);
    pub const cudaDevAttrCanMapHostMemory: cudaDeviceAttr = cudaDeviceAttr(19);
    pub const cudaDevAttrComputeMode: cudaDeviceAttr = cudaDeviceAttr(20);
    pub const cudaDevAttrMaxTexture1DWidth: cudaDeviceAttr = cudaDeviceAttr(21);
    pub const cudaDevAttrMaxTexture2DWidth: cudaDeviceAttr = cudaDeviceAttr(22);
    pub const cudaDevAttrMaxTexture2DHeight: cudaDeviceAttr = cudaDeviceAttr(23);
    pub const cudaDevAttrMaxTexture3DWidth: cudaDeviceAttr = cudaDeviceAttr(24);
    pub const cudaDevAttrMaxTexture3DHeight: cudaDeviceAttr = cudaDeviceAttr(25);
    pub const cudaDevAttrMaxTexture3DDepth: cudaDeviceAttr = cudaDeviceAttr(26);
    pub const cudaDevAttrMaxTexture2DLayeredWidth: cudaDeviceAttr = cudaDeviceAttr(27);
    pub const cudaDevAttrMaxTexture2DLayeredHeight: cudaDeviceAttr = cudaDeviceAttr(28);
    pub const cudaDevAttrMaxTexture2DLayeredLayers: cudaDeviceAttr = cudaDeviceAttr(29);
    pub const cudaDevAttrSurfaceAlignment: cudaDeviceAttr = cudaDeviceAttr(30);
    pub const cudaDevAttrConcurrentKernels: cudaDeviceAttr = cudaDeviceAttr(31);
    pub const cudaDevAttrEccEnabled: cudaDeviceAttr = cudaDeviceAttr(32);
    pub const cudaDevAttrPciBusId: cudaDeviceAttr = cudaDeviceAttr(33);
    pub const cudaDevAttrPciDeviceId: cudaDeviceAttr = cudaDeviceAttr(34);
    pub const cudaDevAttrTccDriver: cudaDeviceAttr = cudaDeviceAttr(35);
    pub const cudaDevAttrMemoryClockRate: cudaDeviceAttr = cudaDeviceAttr(36);
    pub const cudaDevAttrGlobalMemoryBusWidth: cudaDeviceAttr = cudaDeviceAttr(37);
    pub const cudaDevAttrL2CacheSize: cudaDeviceAttr = cudaDeviceAttr(38);
    pub const cudaDevAttrMaxThreadsPerMultiProcessor: cudaDeviceAttr = cudaDeviceAttr(
        39,
    );
    pub const cudaDevAttrAsyncEngineCount: cudaDeviceAttr = cudaDeviceAttr(40);
    pub const cudaDevAttrUnifiedAddressing: cudaDeviceAttr = cudaDeviceAttr(41);
    pub const cudaDevAttrMaxTexture1DLayeredWidth: cudaDeviceAttr = cudaDeviceAttr(42);
    pub const cudaDevAttrMaxTexture1DLayeredLayers: cudaDeviceAttr = cudaDeviceAttr(43);
    pub const cudaDevAttrMaxTexture2DGatherWidth: cudaDeviceAttr = cudaDeviceAttr(45);
    pub const cudaDevAttrMaxTexture2DGatherHeight: cudaDeviceAttr = cudaDeviceAttr(46);
    pub const cudaDevAttrMaxTexture3DWidthAlt: cudaDeviceAttr = cudaDeviceAttr(47);
    pub const cudaDevAttrMaxTexture3DHeightAlt: cudaDeviceAttr = cudaDeviceAttr(48);
    pub const cudaDevAttrMaxTexture3DDepthAlt: cudaDeviceAttr = cudaDeviceAttr(49);
    pub const cudaDevAttrPciDomainId: cudaDeviceAttr = cudaDeviceAttr(50);
    pub const cudaDevAttrTexturePitchAlignment: cudaDeviceAttr = cudaDeviceAttr(51);
    pub const cudaDevAttrMaxTextureCubemapWidth: cudaDeviceAttr = cudaDeviceAttr(52);
    pub const cudaDevAttrMaxTextureCubemapLayeredWidth: cudaDeviceAttr = cudaDeviceAttr(
        53,
    );
    pub const cudaDevAttrMaxTextureCubemapLayeredLayers: cudaDeviceAttr = cudaDeviceAttr(
        54,
    );
    pub const cudaDevAttrMaxSurface1DWidth: cudaDeviceAttr = cudaDeviceAttr(55);
    pub const cudaDevAttrMaxSurface2DWidth: cudaDeviceAttr = cudaDeviceAttr(56);
    pub const cudaDevAttrMaxSurface2DHeight: cudaDeviceAttr = cudaDeviceAttr(57);
    pub const cudaDevAttrMaxSurface3DWidth: cudaDeviceAttr = cudaDeviceAttr(58);
    pub const cudaDevAttrMaxSurface3DHeight: cudaDeviceAttr = cudaDeviceAttr(59);
    pub const cudaDevAttrMaxSurface3DDepth: cudaDeviceAttr = cudaDeviceAttr(60);
    pub const cudaDevAttrMaxSurface1DLayeredWidth: cudaDeviceAttr = cudaDeviceAttr(61);
    pub const cudaDevAttrMaxSurface1DLayeredLayers: cudaDeviceAttr = cudaDeviceAttr(62);
    pub const cudaDevAttrMaxSurface2DLayeredWidth: cudaDeviceAttr = cudaDeviceAttr(63);
    pub const cudaDevAttrMaxSurface2DLayeredHeight: cudaDeviceAttr = cudaDeviceAttr(64);
    pub const cudaDevAttrMaxSurface2DLayeredLayers: cudaDeviceAttr = cudaDeviceAttr(65);
    pub const cudaDevAttrMaxSurfaceCubemapWidth: cudaDeviceAttr = cudaDeviceAttr(66);
    pub const cudaDevAttrMaxSurfaceCubemapLayeredWidth: cudaDeviceAttr = cudaDeviceAttr(
        67,
    );
    pub const cudaDevAttrMaxSurfaceCubemapLayeredLayers: cudaDeviceAttr = cudaDeviceAttr(
        68,
    );
    pub const cudaDevAttrMaxTexture1DLinearWidth: cudaDeviceAttr = cudaDeviceAttr(69);
    pub const cudaDevAttrMaxTexture2DLinearWidth: cudaDeviceAttr = cudaDeviceAttr(70);
    pub const cudaDevAttrMaxTexture2DLinearHeight: cudaDeviceAttr = cudaDeviceAttr(71);
    pub const cudaDevAttrMaxTexture2DLinearPitch: cudaDeviceAttr = cudaDeviceAttr(72);
    pub const cudaDevAttrMaxTexture2DMipmappedWidth: cudaDeviceAttr = cudaDeviceAttr(73);
    pub const cudaDevAttrMaxTexture2DMipmappedHeight: cudaDeviceAttr = cudaDeviceAttr(
        74,
    );
    pub const cudaDevAttrComputeCapabilityMajor: cudaDeviceAttr = cudaDeviceAttr(75);
    pub const cudaDevAttrComputeCapabilityMinor: cudaDeviceAttr = cudaDeviceAttr(76);
    pub const cudaDevAttrMaxTexture1DMipmappedWidth: cudaDeviceAttr = cudaDeviceAttr(77);
    pub const cudaDevAttrStreamPrioritiesSupported: cudaDeviceAttr = cudaDeviceAttr(78);
    pub const cudaDevAttrGlobalL1CacheSupported: cudaDeviceAttr = cudaDeviceAttr(79);
    pub const cudaDevAttrLocalL1CacheSupported: cudaDeviceAttr = cudaDeviceAttr(80);
    pub const cudaDevAttrMaxSharedMemoryPerMultiprocessor: cudaDeviceAttr = cudaDeviceAttr(
        81,
    );
    pub const cudaDevAttrMaxRegistersPerMultiprocessor: cudaDeviceAttr = cudaDeviceAttr(
        82,
    );
    pub const cudaDevAttrManagedMemory: cudaDeviceAttr = cudaDeviceAttr(83);
    pub const cudaDevAttrIsMultiGpuBoard: cudaDeviceAttr = cudaDeviceAttr(84);
    pub const cudaDevAttrMultiGpuBoardGroupID: cudaDeviceAttr = cudaDeviceAttr(85);
    pub const cudaDevAttrHostNativeAtomicSupported: cudaDeviceAttr = cudaDeviceAttr(86);
    pub const cudaDevAttrSingleToDoublePrecisionPerfRatio: cudaDeviceAttr = cudaDeviceAttr(
        87,
    );
    pub const cudaDevAttrPageableMemoryAccess: cudaDeviceAttr = cudaDeviceAttr(88);
    pub const cudaDevAttrConcurrentManagedAccess: cudaDeviceAttr = cudaDeviceAttr(89);
    pub const cudaDevAttrComputePreemptionSupported: cudaDeviceAttr = cudaDeviceAttr(90);
    pub const cudaDevAttrCanUseHostPointerForRegisteredMem: cudaDeviceAttr = cudaDeviceAttr(
        91,
    );
    pub const cudaDevAttrReserved92: cudaDeviceAttr = cudaDeviceAttr(92);
    pub const cudaDevAttrReserved93: cudaDeviceAttr = cudaDeviceAttr(93);
    pub const cudaDevAttrReserved94: cudaDeviceAttr = cudaDeviceAttr(94);
    pub const cudaDevAttrCooperativeLaunch: cudaDeviceAttr = cudaDeviceAttr(95);
    pub const cudaDevAttrReserved96: cudaDeviceAttr = cudaDeviceAttr(96);
    pub const cudaDevAttrMaxSharedMemoryPerBlockOptin: cudaDeviceAttr = cudaDeviceAttr(
        97,
    );
    pub const cudaDevAttrCanFlushRemoteWrites: cudaDeviceAttr = cudaDeviceAttr(98);
    pub const cudaDevAttrHostRegisterSupported: cudaDeviceAttr = cudaDeviceAttr(99);
    pub const cudaDevAttrPageableMemoryAccessUsesHostPageTables: cudaDeviceAttr = cudaDeviceAttr(
        100,
    );
    pub const cudaDevAttrDirectManagedMemAccessFromHost: cudaDeviceAttr = cudaDeviceAttr(
        101,
    );
    pub const cudaDevAttrMaxBlocksPerMultiprocessor: cudaDeviceAttr = cudaDeviceAttr(
        106,
    );
    pub const cudaDevAttrMaxPersistingL2CacheSize: cudaDeviceAttr = cudaDeviceAttr(108);
    pub const cudaDevAttrMaxAccessPolicyWindowSize: cudaDeviceAttr = cudaDeviceAttr(109);
    pub const cudaDevAttrReservedSharedMemoryPerBlock: cudaDeviceAttr = cudaDeviceAttr(
        111,
    );
    pub const cudaDevAttrSparseCudaArraySupported: cudaDeviceAttr = cudaDeviceAttr(112);
    pub const cudaDevAttrHostRegisterReadOnlySupported: cudaDeviceAttr = cudaDeviceAttr(
        113,
    );
    pub const cudaDevAttrTimelineSemaphoreInteropSupported: cudaDeviceAttr = cudaDeviceAttr(
        114,
    );
    pub const cudaDevAttrMemoryPoolsSupported: cudaDeviceAttr = cudaDeviceAttr(115);
    pub const cudaDevAttrGPUDirectRDMASupported: cudaDeviceAttr = cudaDeviceAttr(116);
    pub const cudaDevAttrGPUDirectRDMAFlushWritesOptions: cudaDeviceAttr = cudaDeviceAttr(
        117,
    );
    pub const cudaDevAttrGPUDirectRDMAWritesOrdering: cudaDeviceAttr = cudaDeviceAttr(
        118,
    );
    pub const cudaDevAttrMemoryPoolSupportedHandleTypes: cudaDeviceAttr = cudaDeviceAttr(
        119,
    );
    pub const cudaDevAttrClusterLaunch: cudaDeviceAttr = cudaDeviceAttr(120);
    pub const cudaDevAttrDeferredMappingCudaArraySupported: cudaDeviceAttr = cudaDeviceAttr(
        121,
    );
    pub const cudaDevAttrReserved122: cudaDeviceAttr = cudaDeviceAttr(122);
    pub const cudaDevAttrReserved123: cudaDeviceAttr = cudaDeviceAttr(123);
    pub const cudaDevAttrReserved124: cudaDeviceAttr = cudaDeviceAttr(124);
    pub const cudaDevAttrIpcEventSupport: cudaDeviceAttr = cudaDeviceAttr(125);
    pub const cudaDevAttrMemSyncDomainCount: cudaDeviceAttr = cudaDeviceAttr(126);
    pub const cudaDevAttrReserved127: cudaDeviceAttr = cudaDeviceAttr(127);
    pub const cudaDevAttrReserved128: cudaDeviceAttr = cudaDeviceAttr(128);
    pub const cudaDevAttrReserved129: cudaDeviceAttr = cudaDeviceAttr(129);
    pub const cudaDevAttrNumaConfig: cudaDeviceAttr = cudaDeviceAttr(130);
    pub const cudaDevAttrNumaId: cudaDeviceAttr = cudaDeviceAttr(131);
    pub const cudaDevAttrReserved132: cudaDeviceAttr = cudaDeviceAttr(132);
    pub const cudaDevAttrMpsEnabled: cudaDeviceAttr = cudaDeviceAttr(133);
    pub const cudaDevAttrHostNumaId: cudaDeviceAttr = cudaDeviceAttr(134);
    pub const cudaDevAttrD3D12CigSupported: cudaDeviceAttr = cudaDeviceAttr(135);
    pub const cudaDevAttrVulkanCigSupported: cudaDeviceAttr = cudaDeviceAttr(138);
    pub const cudaDevAttrGpuPciDeviceId: cudaDeviceAttr = cudaDeviceAttr(139);
    pub const cudaDevAttrGpuPciSubsystemId: cudaDeviceAttr = cudaDeviceAttr(140);
    pub const cudaDevAttrReserved141: cudaDeviceAttr = cudaDeviceAttr(141);
    pub const cudaDevAttrHostNumaMemoryPoolsSupported: cudaDeviceAttr = cudaDeviceAttr(
        142,
    );
    pub const cudaDevAttrHostNumaMultinodeIpcSupported: cudaDeviceAttr = cudaDeviceAttr(
        143,
    );
    pub const cudaDevAttrHostMemoryPoolsSupported: cudaDeviceAttr = cudaDeviceAttr(144);
    pub const cudaDevAttrReserved145: cudaDeviceAttr = cudaDeviceAttr(145);
    pub const cudaDevAttrOnlyPartialHostNativeAtomicSupported: cudaDeviceAttr = cudaDeviceAttr(
        147,
    );
    pub const cudaDevAttrMax: cudaDeviceAttr = cudaDeviceAttr(148);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cudaDeviceAttr(pub ::std::os::raw::c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUuuid_st {
    pub bytes: [::std::os::raw::c_char; 16usize],
}
pub type cudaUUID_t = CUuuid_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaDeviceProp {
    pub name: [::std::os::raw::c_char; 256usize],
    pub uuid: cudaUUID_t,
    pub luid: [::std::os::raw::c_char; 8usize],
    pub luidDeviceNodeMask: ::std::os::raw::c_uint,
    pub totalGlobalMem: usize,
    pub sharedMemPerBlock: usize,
    pub regsPerBlock: ::std::os::raw::c_int,
    pub warpSize: ::std::os::raw::c_int,
    pub memPitch: usize,
    pub maxThreadsPerBlock: ::std::os::raw::c_int,
    pub maxThreadsDim: [::std::os::raw::c_int; 3usize],
    pub maxGridSize: [::std::os::raw::c_int; 3usize],
    pub totalConstMem: usize,
    pub major: ::std::os::raw::c_int,
    pub minor: ::std::os::raw::c_int,
    pub textureAlignment: usize,
    pub texturePitchAlignment: usize,
    pub multiProcessorCount: ::std::os::raw::c_int,
    pub integrated: ::std::os::raw::c_int,
    pub canMapHostMemory: ::std::os::raw::c_int,
    pub maxTexture1D: ::std::os::raw::c_int,
    pub maxTexture1DMipmap: ::std::os::raw::c_int,
    pub maxTexture2D: [::std::os::raw::c_int; 2usize],
    pub maxTexture2DMipmap: [::std::os::raw::c_int; 2usize],
    pub maxTexture2DLinear: [::std::os::raw::c_int; 3usize],
    pub maxTexture2DGather: [::std::os::raw::c_int; 2usize],
    pub maxTexture3D: [::std::os::raw::c_int; 3usize],
    pub maxTexture3DAlt: [::std::os::raw::c_int; 3usize],
    pub maxTextureCubemap: ::std::os::raw::c_int,
    pub maxTexture1DLayered: [::std::os::raw::c_int; 2usize],
    pub maxTexture2DLayered: [::std::os::raw::c_int; 3usize],
    pub maxTextureCubemapLayered: [::std::os::raw::c_int; 2usize],
    pub maxSurface1D: ::std::os::raw::c_int,
    pub maxSurface2D: [::std::os::raw::c_int; 2usize],
    pub maxSurface3D: [::std::os::raw::c_int; 3usize],
    pub maxSurface1DLayered: [::std::os::raw::c_int; 2usize],
    pub maxSurface2DLayered: [::std::os::raw::c_int; 3usize],
    pub maxSurfaceCubemap: ::std::os::raw::c_int,
    pub maxSurfaceCubemapLayered: [::std::os::raw::c_int; 2usize],
    pub surfaceAlignment: usize,
    pub concurrentKernels: ::std::os::raw::c_int,
    pub ECCEnabled: ::std::os::raw::c_int,
    pub pciBusID: ::std::os::raw::c_int,
    pub pciDeviceID: ::std::os::raw::c_int,
    pub pciDomainID: ::std::os::raw::c_int,
    pub tccDriver: ::std::os::raw::c_int,
    pub asyncEngineCount: ::std::os::raw::c_int,
    pub unifiedAddressing: ::std::os::raw::c_int,
    pub memoryBusWidth: ::std::os::raw::c_int,
    pub l2CacheSize: ::std::os::raw::c_int,
    pub persistingL2CacheMaxSize: ::std::os::raw::c_int,
    pub maxThreadsPerMultiProcessor: ::std::os::raw::c_int,
    pub streamPrioritiesSupported: ::std::os::raw::c_int,
    pub globalL1CacheSupported: ::std::os::raw::c_int,
    pub localL1CacheSupported: ::std::os::raw::c_int,
    pub sharedMemPerMultiprocessor: usize,
    pub regsPerMultiprocessor: ::std::os::raw::c_int,
    pub managedMemory: ::std::os::raw::c_int,
    pub isMultiGpuBoard: ::std::os::raw::c_int,
    pub multiGpuBoardGroupID: ::std::os::raw::c_int,
    pub hostNativeAtomicSupported: ::std::os::raw::c_int,
    pub pageableMemoryAccess: ::std::os::raw::c_int,
    pub concurrentManagedAccess: ::std::os::raw::c_int,
    pub computePreemptionSupported: ::std::os::raw::c_int,
    pub canUseHostPointerForRegisteredMem: ::std::os::raw::c_int,
    pub cooperativeLaunch: ::std::os::raw::c_int,
    pub sharedMemPerBlockOptin: usize,
    pub pageableMemoryAccessUsesHostPageTables: ::std::os::raw::c_int,
    pub directManagedMemAccessFromHost: ::std::os::raw::c_int,
    pub maxBlocksPerMultiProcessor: ::std::os::raw::c_int,
    pub accessPolicyMaxWindowSize: ::std::os::raw::c_int,
    pub reservedSharedMemPerBlock: usize,
    pub hostRegisterSupported: ::std::os::raw::c_int,
    pub sparseCudaArraySupported: ::std::os::raw::c_int,
    pub hostRegisterReadOnlySupported: ::std::os::raw::c_int,
    pub timelineSemaphoreInteropSupported: ::std::os::raw::c_int,
    pub memoryPoolsSupported: ::std::os::raw::c_int,
    pub gpuDirectRDMASupported: ::std::os::raw::c_int,
    pub gpuDirectRDMAFlushWritesOptions: ::std::os::raw::c_uint,
    pub gpuDirectRDMAWritesOrdering: ::std::os::raw::c_int,
    pub memoryPoolSupportedHandleTypes: ::std::os::raw::c_uint,
    pub deferredMappingCudaArraySupported: ::std::os::raw::c_int,
    pub ipcEventSupported: ::std::os::raw::c_int,
    pub clusterLaunch: ::std::os::raw::c_int,
    pub unifiedFunctionPointers: ::std::os::raw::c_int,
    pub deviceNumaConfig: ::std::os::raw::c_int,
    pub deviceNumaId: ::std::os::raw::c_int,
    pub mpsEnabled: ::std::os::raw::c_int,
    pub hostNumaId: ::std::os::raw::c_int,
    pub gpuPciDeviceID: ::std::os::raw::c_uint,
    pub gpuPciSubsystemID: ::std::os::raw::c_uint,
    pub hostNumaMultinodeIpcSupported: ::std::os::raw::c_int,
    pub reserved: [::std::os::raw::c_int; 56usize],
}
#[repr(C)]
#[derive(Debug)]
pub struct CUstream_st {
    _unused: [u8; 0],
}
pub type cudaStream_t = *mut CUstream_st;
impl cudaGraphNodeType {
    pub const cudaGraphNodeTypeKernel: cudaGraphNodeType = cudaGraphNodeType(0);
    pub const cudaGraphNodeTypeMemcpy: cudaGraphNodeType = cudaGraphNodeType(1);
    pub const cudaGraphNodeTypeMemset: cudaGraphNodeType = cudaGraphNodeType(2);
    pub const cudaGraphNodeTypeHost: cudaGraphNodeType = cudaGraphNodeType(3);
    pub const cudaGraphNodeTypeGraph: cudaGraphNodeType = cudaGraphNodeType(4);
    pub const cudaGraphNodeTypeEmpty: cudaGraphNodeType = cudaGraphNodeType(5);
    pub const cudaGraphNodeTypeWaitEvent: cudaGraphNodeType = cudaGraphNodeType(6);
    pub const cudaGraphNodeTypeEventRecord: cudaGraphNodeType = cudaGraphNodeType(7);
    pub const cudaGraphNodeTypeExtSemaphoreSignal: cudaGraphNodeType = cudaGraphNodeType(
        8,
    );
    pub const cudaGraphNodeTypeExtSemaphoreWait: cudaGraphNodeType = cudaGraphNodeType(
        9,
    );
    pub const cudaGraphNodeTypeMemAlloc: cudaGraphNodeType = cudaGraphNodeType(10);
    pub const cudaGraphNodeTypeMemFree: cudaGraphNodeType = cudaGraphNodeType(11);
    pub const cudaGraphNodeTypeConditional: cudaGraphNodeType = cudaGraphNodeType(13);
    pub const cudaGraphNodeTypeCount: cudaGraphNodeType = cudaGraphNodeType(14);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cudaGraphNodeType(pub ::std::os::raw::c_uint);
impl cudaDriverEntryPointQueryResult {
    pub const cudaDriverEntryPointSuccess: cudaDriverEntryPointQueryResult = cudaDriverEntryPointQueryResult(
        0,
    );
    pub const cudaDriverEntryPointSymbolNotFound: cudaDriverEntryPointQueryResult = cudaDriverEntryPointQueryResult(
        1,
    );
    pub const cudaDriverEntryPointVersionNotSufficent: cudaDriverEntryPointQueryResult = cudaDriverEntryPointQueryResult(
        2,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cudaDriverEntryPointQueryResult(pub ::std::os::raw::c_uint);
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct cudaLaunchAttribute_st {
    pub _bindgen_opaque_blob: __BindgenOpaqueArray8<[u8; 72usize]>,
}
pub type cudaLaunchAttribute = cudaLaunchAttribute_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaLaunchConfig_st {
    pub gridDim: dim3,
    pub blockDim: dim3,
    pub dynamicSmemBytes: usize,
    pub stream: cudaStream_t,
    pub attrs: *mut cudaLaunchAttribute,
    pub numAttrs: ::std::os::raw::c_uint,
}
