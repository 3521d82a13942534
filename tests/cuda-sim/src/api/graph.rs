//! Graphs: making them ready, launching them, looking at their nodes, and what they keep alive.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Out, loaded};
use crate::error::{Error, Status};
use crate::graph::{self, UserObject};
use crate::handles::Handles;
use crate::stream;

entries! {
    fn cudaGraphDestroy(graph: usize) { graph::destroy(graph) }

    fn cudaGraphInstantiate(exec: Out<usize>, graph: usize, _flags: u64) {
        exec.put(graph::instantiate(&*graph::resolve(graph)?))
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphInstantiateWithFlags(exec: Out<usize>, graph: usize, flags: u64) -> Error {
    cudaGraphInstantiate(exec, graph, flags)
}

entries! {
    fn cudaGraphExecDestroy(exec: usize) { graph::destroy_exec(exec) }

    fn cudaGraphLaunch(exec: usize, stream: usize) {
        graph::launch(exec, &stream::resolve(stream)?)
    }
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

entries! {
    fn cudaGraphGetNodes(graph: usize, nodes: Out<usize>, count: *mut usize) {
        let all: Vec<usize> = graph::resolve(graph)?
            .nodes()
            .iter()
            .map(|node| node.handle)
            .collect();
        put_handles(&all, nodes, count)
    }

    /// CUDA 13: (node, nodes, edges, count). CUDA 12: (node, nodes, count).
    fn cudaGraphNodeGetDependencies(
        node: usize,
        nodes: Out<usize>,
        edges_or_count: *mut usize,
        count: *mut usize,
    ) {
        let count = if loaded::major() < 13 {
            edges_or_count
        } else {
            count
        };
        put_handles(&graph::resolve_node(node)?.depends_on, nodes, count)
    }

    fn cudaGraphNodeGetDependencies_v2(
        node: usize,
        nodes: Out<usize>,
        _edges: *mut usize,
        count: *mut usize,
    ) {
        put_handles(&graph::resolve_node(node)?.depends_on, nodes, count)
    }
}

/// A user object and how many references its owner has; graphs hold theirs by `Arc`.
struct Counted {
    object: Arc<UserObject>,
    references: AtomicU32,
}

static OBJECTS: Handles<Counted> = Handles::new(6);

entries! {
    fn cudaUserObjectCreate(
        handle: Out<usize>,
        data: usize,
        destroy: Option<extern "C" fn(*mut c_void)>,
        references: c_uint,
        _flags: c_uint,
    ) {
        let destroy = destroy.ok_or(Error::cudaErrorInvalidValue)?;
        let call = move || destroy(std::ptr::with_exposed_provenance_mut(data));
        let object = Arc::new(UserObject(Box::new(call)));
        handle.put(OBJECTS.insert(Counted {
            object,
            references: AtomicU32::new(references),
        }))
    }
}

fn object(handle: usize) -> Status<Arc<Counted>> {
    OBJECTS.get(handle).map_err(|_| Error::cudaErrorInvalidValue)
}

fn release(handle: usize, count: c_uint) -> Status {
    let counted = object(handle)?;
    if counted.references.fetch_sub(count, Ordering::AcqRel) <= count {
        OBJECTS.remove(handle).map_err(|_| Error::cudaErrorInvalidValue)?;
    }
    Ok(())
}

entries! {
    fn cudaUserObjectRelease(handle: usize, count: c_uint) { release(handle, count) }

    /// With the flag `cudaGraphUserObjectMove` (1) the caller's references become the graph's.
    fn cudaGraphRetainUserObject(graph: usize, handle: usize, count: c_uint, flags: c_uint) {
        graph::keep(
            &*graph::resolve(graph)?,
            Arc::clone(&object(handle)?.object),
        );
        if flags & 1 != 0 {
            release(handle, count)
        } else {
            Ok(())
        }
    }
}
