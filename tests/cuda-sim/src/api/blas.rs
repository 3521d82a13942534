//! cuBLAS and cublasLt as far as PyTorch's linear layers call them: what multiplies computes nothing.
//!
//! Declared by hand from `cublas_api.h` and `cublasLt.h` of CUDA 12 and 13, which agree on all of it; the
//! runtime's headers, of which bindgen makes `bindings`, do not have it. Arguments that are not looked
//! at are not declared where the C calling convention leaves them to the caller.

use std::ffi::c_int;

use super::Out;
use crate::blas;
use crate::error::{Error, Status, guard};

/// `cublasStatus_t`, as far as the simulator answers it.
#[repr(transparent)]
#[derive(Debug, PartialEq, Eq)]
struct Answer(c_int);

impl Answer {
    const SUCCESS: Self = Self(0);
    const NOT_INITIALIZED: Self = Self(1);
    const ALLOC_FAILED: Self = Self(3);
    const INVALID_VALUE: Self = Self(7);
    const EXECUTION_FAILED: Self = Self(13);
    const NOT_SUPPORTED: Self = Self(15);
}

/// Run the body of an entry point. The runtime's last error stays what it was: cuBLAS has a runtime
/// of its own.
fn answer(entry: &'static str, body: impl FnOnce() -> Status) -> Answer {
    match guard(entry, body) {
        Error::cudaSuccess => Answer::SUCCESS,
        Error::cudaErrorInvalidValue => Answer::INVALID_VALUE,
        Error::cudaErrorMemoryAllocation => Answer::ALLOC_FAILED,
        Error::cudaErrorNotSupported => Answer::NOT_SUPPORTED,
        // No such handle, no device, or a forked child.
        Error::cudaErrorInvalidResourceHandle | Error::cudaErrorInitializationError | Error::cudaErrorNoDevice => {
            Answer::NOT_INITIALIZED
        }
        _ => Answer::EXECUTION_FAILED,
    }
}

#[unsafe(no_mangle)]
extern "C" fn cublasCreate_v2(place: Out<usize>) -> Answer {
    answer("cublasCreate_v2", || place.put(blas::create()?))
}

#[unsafe(no_mangle)]
extern "C" fn cublasDestroy_v2(handle: usize) -> Answer {
    answer("cublasDestroy_v2", || blas::destroy(handle))
}

#[unsafe(no_mangle)]
extern "C" fn cublasSetStream_v2(handle: usize, stream: usize) -> Answer {
    answer("cublasSetStream_v2", || blas::set_stream(handle, stream))
}

/// Define functions whose first argument is a handle and of which nothing else is looked at.
macro_rules! with_handle {
    ($act:expr; $($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(handle: usize) -> Answer {
            answer(stringify!($name), || $act(stringify!($name), handle))
        }
    )*};
}

// Settings of a computation that does not take place.
with_handle! {
    |_, handle| blas::check(handle);
    cublasSetWorkspace_v2 cublasSetSmCountTarget cublasSetMathMode cublasSetPointerMode_v2
}

/// Define functions that answer a setting: what it is unless set, as far as anything follows from it.
macro_rules! setting {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(handle: usize, value: Out<c_int>) -> Answer {
            answer(stringify!($name), || {
                blas::check(handle)?;
                value.put(0)
            })
        }
    )*};
}

setting! { cublasGetMathMode cublasGetPointerMode_v2 }

// Products of matrices and vectors.
with_handle! {
    blas::compute;
    cublasSgemm_v2 cublasDgemm_v2 cublasCgemm_v2 cublasZgemm_v2 cublasSgemmEx cublasGemmEx
    cublasSgemmStridedBatched cublasDgemmStridedBatched cublasCgemmStridedBatched
    cublasZgemmStridedBatched cublasGemmStridedBatchedEx
    cublasSgemv_v2 cublasDgemv_v2 cublasCgemv_v2 cublasZgemv_v2
    cublasSdot_v2 cublasDdot_v2 cublasCdotu_v2 cublasCdotc_v2 cublasZdotu_v2 cublasZdotc_v2 cublasDotEx
}

// Systems of equations: a caller that looks at what was to be computed would go astray.
with_handle! {
    |_, _| Err(Error::cudaErrorNotSupported);
    cublasStrsm_v2 cublasDtrsm_v2 cublasCtrsm_v2 cublasZtrsm_v2
    cublasStrsmBatched cublasDtrsmBatched cublasCtrsmBatched cublasZtrsmBatched
    cublasSgetrfBatched cublasDgetrfBatched cublasCgetrfBatched cublasZgetrfBatched
    cublasSgetrsBatched cublasDgetrsBatched cublasCgetrsBatched cublasZgetrsBatched
    cublasSgeqrfBatched cublasDgeqrfBatched cublasCgeqrfBatched cublasZgeqrfBatched
    cublasSgelsBatched cublasDgelsBatched cublasCgelsBatched cublasZgelsBatched
}

// Algorithms that a caller puts together.
with_handle! {
    |_, _| Err(Error::cudaErrorNotSupported);
    cublasLtMatmulAlgoInit cublasLtMatmulAlgoCheck
}

/// Define the functions of a kind of cublasLt's descriptors: layouts, operations and preferences mean nothing here.
macro_rules! descriptor {
    ($($create:ident $set:ident $destroy:ident)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $create(place: Out<usize>) -> Answer {
            answer(stringify!($create), || place.put(DESCRIPTOR))
        }

        with_handle! { |_, _| Ok(()); $set $destroy }
    )*};
}

/// What every descriptor's handle is.
const DESCRIPTOR: usize = 1;

descriptor! {
    cublasLtMatmulDescCreate cublasLtMatmulDescSetAttribute cublasLtMatmulDescDestroy
    cublasLtMatrixLayoutCreate cublasLtMatrixLayoutSetAttribute cublasLtMatrixLayoutDestroy
    cublasLtMatmulPreferenceCreate cublasLtMatmulPreferenceSetAttribute cublasLtMatmulPreferenceDestroy
}

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
struct Heuristic {
    algorithm: [u64; 8],
    workspace_bytes: usize,
    state: Answer,
    waves: f32,
    reserved: [c_int; 4],
}

/// One algorithm, which needs no workspace.
#[unsafe(no_mangle)]
extern "C" fn cublasLtMatmulAlgoGetHeuristic(
    handle: usize,
    _operation: usize,
    _a: usize,
    _b: usize,
    _c: usize,
    _d: usize,
    _preference: usize,
    requested: c_int,
    results: Out<Heuristic>,
    count: Out<c_int>,
) -> Answer {
    answer("cublasLtMatmulAlgoGetHeuristic", || {
        blas::check(handle)?;
        if requested < 1 {
            return Err(Error::cudaErrorInvalidValue);
        }
        results.put(Heuristic {
            algorithm: [0; 8],
            workspace_bytes: 0,
            state: Answer::SUCCESS,
            waves: 1.0,
            reserved: [0; 4],
        })?;
        count.put(1)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtMatmul(
    handle: usize,
    _operation: usize,
    _alpha: usize,
    _a: usize,
    _a_layout: usize,
    _b: usize,
    _b_layout: usize,
    _beta: usize,
    _c: usize,
    _c_layout: usize,
    _d: usize,
    _d_layout: usize,
    _algorithm: usize,
    _workspace: usize,
    _workspace_bytes: usize,
    stream: usize,
) -> Answer {
    answer("cublasLtMatmul", || blas::compute_on("cublasLtMatmul", handle, stream))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error;

    #[test]
    fn an_unknown_handle_and_what_is_not_computed_are_refused_and_leave_no_error_behind() {
        assert_eq!(cublasSgemm_v2(0x30), Answer::NOT_INITIALIZED);
        assert_eq!(cublasSgetrfBatched(0), Answer::NOT_SUPPORTED);
        assert_eq!(error::peek(), Error::cudaSuccess);
        // The heuristics' answer has the size that the header gives it.
        assert_eq!(size_of::<Heuristic>(), 96);
    }
}
