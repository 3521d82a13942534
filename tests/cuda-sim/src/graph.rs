//! Graphs: what a capture recorded, in an order that respects its dependencies, and replaying it.

use std::sync::{Arc, Mutex};

use crate::error::{Error, Status, lock};
use crate::event::{self, Event};
use crate::handles::Handles;
use crate::stats::STATS;
use crate::stream::{self, Stream};
use crate::work::Work;

static GRAPHS: Handles<Graph> = Handles::new(3);
static NODES: Handles<Node> = Handles::new(4);
static EXECS: Handles<Exec> = Handles::new(5);

/// What a node does when the graph runs.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Stream work.
    Work(Work),
    /// Record an event that is seen from outside.
    Record(Arc<Event>),
    /// Wait for an event that is recorded outside.
    Wait(Arc<Event>),
}

/// One node.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) handle: usize,
    pub(crate) depends_on: Vec<usize>,
    step: Step,
}

/// Nodes in the order in which they were recorded. A node can only depend on earlier ones.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: Mutex<Vec<Arc<Node>>>,
    /// What to run when the graph is destroyed: user objects that it keeps.
    keeps: Mutex<Vec<Arc<UserObject>>>,
}

impl Graph {
    /// Add a node that runs after some others; the answer is its handle.
    pub(crate) fn add(&self, step: Step, depends_on: Vec<usize>) -> usize {
        let node = NODES.insert_with(|handle| Node { handle, depends_on, step });
        lock(&self.nodes).push(Arc::clone(&node));
        node.handle
    }

    /// Its nodes.
    pub(crate) fn nodes(&self) -> Vec<Arc<Node>> {
        lock(&self.nodes).clone()
    }

    /// Nodes that no other one depends on.
    pub(crate) fn leaves(&self) -> Vec<usize> {
        let nodes = self.nodes();
        let followed = |handle| nodes.iter().any(|node| node.depends_on.contains(&handle));
        nodes.iter().map(|node| node.handle).filter(|&handle| !followed(handle)).collect()
    }
}

/// Something whose destructor runs when nothing needs it any more.
pub(crate) struct UserObject(pub(crate) Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for UserObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UserObject")
    }
}

impl Drop for UserObject {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A graph made ready to launch.
#[derive(Debug)]
pub(crate) struct Exec {
    steps: Vec<Step>,
    _keeps: Vec<Arc<UserObject>>,
}

/// Make an empty graph.
pub(crate) fn create() -> usize {
    GRAPHS.insert(Graph::default())
}

/// The graph of a handle.
pub(crate) fn resolve(handle: usize) -> Status<Arc<Graph>> {
    GRAPHS.get(handle).map_err(|_| Error::cudaErrorInvalidValue)
}

/// The node of a handle.
pub(crate) fn resolve_node(handle: usize) -> Status<Arc<Node>> {
    NODES.get(handle).map_err(|_| Error::cudaErrorInvalidValue)
}

/// `cudaGraphDestroy`.
pub(crate) fn destroy(handle: usize) -> Status {
    let graph = GRAPHS.remove(handle).map_err(|_| Error::cudaErrorInvalidValue)?;
    for node in graph.nodes() {
        // Each node of a live graph is in the table.
        let _ = NODES.remove(node.handle);
    }
    Ok(())
}

/// `cudaGraphRetainUserObject`.
pub(crate) fn keep(graph: &Graph, object: Arc<UserObject>) {
    lock(&graph.keeps).push(object);
}

/// `cudaGraphInstantiate`: a copy, so that the graph may change or go.
pub(crate) fn instantiate(graph: &Graph) -> usize {
    let steps = graph.nodes().iter().map(|node| node.step.clone()).collect();
    EXECS.insert(Exec { steps, _keeps: lock(&graph.keeps).clone() })
}

/// `cudaGraphExecDestroy`.
pub(crate) fn destroy_exec(handle: usize) -> Status {
    EXECS.remove(handle).map(|_| ()).map_err(|_| Error::cudaErrorInvalidValue)
}

/// `cudaGraphLaunch`: each step on the stream, in order.
pub(crate) fn launch(handle: usize, stream: &Arc<Stream>) -> Status {
    let exec = EXECS.get(handle).map_err(|_| Error::cudaErrorInvalidValue)?;
    for step in &exec.steps {
        match step {
            Step::Work(work) => {
                if matches!(work, Work::Kernel | Work::Hold(_)) {
                    STATS.kernels_launched.add(1);
                }
                stream::submit(stream, work.clone())?;
            }
            Step::Record(event) => event::record(event, stream, 0)?,
            Step::Wait(event) => event::wait(stream, event, 0)?,
        }
    }
    Ok(())
}
