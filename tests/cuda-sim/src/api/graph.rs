//! Graphs: making them ready, launching them, looking at their nodes, and what they keep alive.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Out, loaded};
use crate::error::{Error, Status, answer};
use crate::graph::{self, UserObject};
use crate::handles::Handles;
use crate::stream;

#[unsafe(no_mangle)]
extern "C" fn cudaGraphDestroy(graph: usize) -> Error {
    answer("cudaGraphDestroy", || graph::destroy(graph))
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphInstantiate(exec: Out<usize>, graph: usize, _flags: u64) -> Error {
    answer("cudaGraphInstantiate", || {
        exec.put(graph::instantiate(&*graph::resolve(graph)?))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphInstantiateWithFlags(exec: Out<usize>, graph: usize, flags: u64) -> Error {
    cudaGraphInstantiate(exec, graph, flags)
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphExecDestroy(exec: usize) -> Error {
    answer("cudaGraphExecDestroy", || graph::destroy_exec(exec))
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphLaunch(exec: usize, stream: usize) -> Error {
    answer("cudaGraphLaunch", || {
        graph::launch(exec, &stream::resolve(stream)?)
    })
}

/// Fill a caller's array: as many handles as it has room for, and how many there are.
fn put_handles(handles: &[usize], array: Out<usize>, count: *mut usize) -> Status {
    if count.is_null() {
        return Err(Error::cudaErrorInvalidValue);
    }
    // SAFETY: the caller gives a valid count, which says how much room its array has.
    let room = unsafe { &mut *count };
    if array.is_null() {
        *room = handles.len();
        return Ok(());
    }
    let given = handles.len().min(*room);
    *room = given;
    array.put_all(handles[..given].iter().copied());
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphGetNodes(graph: usize, nodes: Out<usize>, count: *mut usize) -> Error {
    answer("cudaGraphGetNodes", || {
        let all: Vec<usize> = graph::resolve(graph)?
            .nodes()
            .iter()
            .map(|node| node.handle)
            .collect();
        put_handles(&all, nodes, count)
    })
}

/// CUDA 13: (node, nodes, edges, count). CUDA 12: (node, nodes, count).
#[unsafe(no_mangle)]
extern "C" fn cudaGraphNodeGetDependencies(
    node: usize,
    nodes: Out<usize>,
    edges_or_count: *mut usize,
    count: *mut usize,
) -> Error {
    answer("cudaGraphNodeGetDependencies", || {
        let count = if loaded::major() < 13 {
            edges_or_count
        } else {
            count
        };
        put_handles(&graph::resolve_node(node)?.depends_on, nodes, count)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphNodeGetDependencies_v2(
    node: usize,
    nodes: Out<usize>,
    _edges: *mut usize,
    count: *mut usize,
) -> Error {
    answer("cudaGraphNodeGetDependencies_v2", || {
        put_handles(&graph::resolve_node(node)?.depends_on, nodes, count)
    })
}

/// A user object and how many references its owner has; graphs hold theirs by `Arc`.
struct Counted {
    object: Arc<UserObject>,
    references: AtomicU32,
}

static OBJECTS: Handles<Counted> = Handles::new(6);

#[unsafe(no_mangle)]
extern "C" fn cudaUserObjectCreate(
    handle: Out<usize>,
    data: usize,
    destroy: Option<extern "C" fn(*mut c_void)>,
    references: c_uint,
    _flags: c_uint,
) -> Error {
    answer("cudaUserObjectCreate", || {
        let destroy = destroy.ok_or(Error::cudaErrorInvalidValue)?;
        let call = move || destroy(std::ptr::with_exposed_provenance_mut(data));
        let object = Arc::new(UserObject(Box::new(call)));
        handle.put(OBJECTS.insert(Counted {
            object,
            references: AtomicU32::new(references),
        }))
    })
}

fn object(handle: usize) -> Status<Arc<Counted>> {
    OBJECTS
        .get(handle)
        .map_err(|_| Error::cudaErrorInvalidValue)
}

fn release(handle: usize, count: c_uint) -> Status {
    let counted = object(handle)?;
    if counted.references.fetch_sub(count, Ordering::AcqRel) <= count {
        OBJECTS
            .remove(handle)
            .map_err(|_| Error::cudaErrorInvalidValue)?;
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn cudaUserObjectRelease(handle: usize, count: c_uint) -> Error {
    answer("cudaUserObjectRelease", || release(handle, count))
}

/// With the flag `cudaGraphUserObjectMove` (1) the caller's references become the graph's.
#[unsafe(no_mangle)]
extern "C" fn cudaGraphRetainUserObject(
    graph: usize,
    handle: usize,
    count: c_uint,
    flags: c_uint,
) -> Error {
    answer("cudaGraphRetainUserObject", || {
        graph::keep(
            &*graph::resolve(graph)?,
            Arc::clone(&object(handle)?.object),
        );
        if flags & 1 != 0 {
            release(handle, count)
        } else {
            Ok(())
        }
    })
}
