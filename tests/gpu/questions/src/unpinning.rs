//! Whether pins and unpins wait for the device; `pace` has what they cost.
//!
//! A spinning kernel keeps its own stream busy; a call that returns while it runs has not waited.

use std::cell::Cell;
use std::thread;
use std::time::Duration;

use crate::asking::{Asking, Told, timed};
use crate::driver::{Driver, Kernel, Result, Stream, unavailable};
use crate::memory::{Kind, MIB, Region, on};

/// How long the kernel lasts, in seconds.
const KERNEL: f64 = 0.4;
/// A call that takes more than this part of the kernel's time has waited for it.
const MOST: f64 = 0.5;
/// A launch that takes more than this part of it has waited for a call that waits.
const LONG: f64 = 0.1;

pub fn ask(it: &mut Asking, cuda: &Driver) {
    let size = 64 * MIB;
    let kernel = it.need("a kernel that lasts", &format!("{KERNEL} s"), || LongKernel::new(cuda));
    let region = it.need("memory to register", "any kind", || Region::new(Kind::best()?, size));
    let (Some(kernel), Some(region)) = (kernel, region) else {
        return;
    };
    let own = Cell::new(0);
    let alloc = || cuda.host_alloc(size).map(|address| own.set(address));
    let calls: [(&str, &dyn Fn() -> Result<()>); 4] = [
        ("cudaHostRegister", &|| cuda.register(region.address, size)),
        ("cudaHostUnregister", &|| cuda.unregister(region.address)),
        ("cudaHostAlloc", &alloc),
        ("cudaFreeHost", &|| match own.get() {
            0 => unavailable("cudaHostAlloc has given nothing to free"),
            address => cuda.host_free(address),
        }),
    ];
    for (name, call) in calls {
        let on = if name.ends_with("gister") { on(size, region.kind) } else { format!("{} MiB", size / MIB) };
        let asked = format!("does {name} wait for a kernel that does not use the memory?");
        it.ask(&asked, &on, || kernel.is_waited_for(call));
    }
    let asked = "does a launch wait while cudaHostUnregister of another thread waits for a kernel?";
    it.ask(asked, &on(size, region.kind), || {
        cuda.register(region.address, size)?;
        kernel.has_launches_wait(|| cuda.unregister(region.address))
    });
}

struct LongKernel<'a> {
    cuda: &'a Driver,
    stream: Stream,
    seconds: f64,
}

impl<'a> LongKernel<'a> {
    /// The first launch may take longer, so the second one is timed.
    fn new(cuda: &'a Driver) -> Result<Self> {
        let mut it = Self { cuda, stream: cuda.stream()?, seconds: 0.0 };
        for _ in 0..2 {
            it.seconds = timed(|| {
                it.launch()?;
                cuda.finish(it.stream)
            })?;
        }
        if it.seconds < 0.5 * KERNEL {
            let seconds = it.seconds;
            return unavailable(format!("the kernel that should last {KERNEL} s lasts {seconds:.3}"));
        }
        Ok(it)
    }

    fn launch(&self) -> Result<()> {
        let nanoseconds = (KERNEL * 1e9) as u64;
        self.cuda.launch(Kernel::Spin { nanoseconds }, self.stream)
    }

    /// Whether a call returns only after the kernel.
    fn is_waited_for(&self, call: impl FnOnce() -> Result<()>) -> Result<Told> {
        self.launch()?;
        let seconds = timed(call);
        let over = self.cuda.is_idle(self.stream);
        // Also where the call was refused: the next question begins with no kernel.
        self.cuda.finish(self.stream)?;
        let (seconds, over) = (seconds?, over?);
        let told = format!("it took {:.2} ms of a kernel's {:.0} ms", 1e3 * seconds, 1e3 * self.seconds);
        if over && seconds < MOST * self.seconds {
            return unavailable(format!("the kernel was over too soon: {told}"));
        }
        Ok(Told::said(over, told))
    }

    /// Whether a launch in another stream waits while a thread makes this call.
    fn has_launches_wait(&self, call: impl FnOnce() -> Result<()> + Send) -> Result<Told> {
        let other = self.cuda.stream()?;
        self.launch()?;
        let seconds = thread::scope(|scope| {
            let caller = scope.spawn(|| {
                self.cuda.enter()?;
                call()
            });
            thread::sleep(Duration::from_secs_f64(LONG * KERNEL));
            let seconds = timed(|| self.cuda.launch(Kernel::Spin { nanoseconds: 1 }, other));
            let panicked = |_| unavailable("the thread panicked");
            caller.join().unwrap_or_else(panicked).and(seconds)
        });
        self.cuda.finish(self.stream)?;
        let seconds = seconds?;
        let told = format!("it took {:.2} ms beside a kernel of {:.0} ms", 1e3 * seconds, 1e3 * self.seconds);
        Ok(Told::said(seconds > LONG * self.seconds, told))
    }
}
