//! Lets several workers take jobs one by one, and brings what they tell to the thread that waits for it.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

/// Runs `work(worker, job, say)` for each job by its index, in order, on so many threads at once. What they say is told to
/// `hear` in the calling thread; when that says so, or `interrupted` is set, no further job is begun.
pub(super) fn share_out<Word: Send>(
    jobs: usize,
    workers: usize,
    interrupted: &AtomicBool,
    work: impl Fn(usize, usize, &dyn Fn(Word)) + Sync,
    mut hear: impl FnMut(Word) -> ControlFlow<()>,
) {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let (sender, told) = channel();
    thread::scope(|scope| {
        for worker in 0..workers.clamp(1, jobs.max(1)) {
            let sender = sender.clone();
            let (next, stop, work) = (&next, &stop, &work);
            scope.spawn(move || {
                // The receiver is gone only when the run is being stopped.
                let say = |word| drop(sender.send(word));
                while !stop.load(Ordering::Relaxed) && !interrupted.load(Ordering::Relaxed) {
                    let job = next.fetch_add(1, Ordering::Relaxed);
                    if job >= jobs {
                        break;
                    }
                    work(worker, job, &say);
                }
            });
        }
        drop(sender);
        for word in told {
            if hear(word).is_break() {
                stop.store(true, Ordering::Relaxed);
                break;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::share_out;
    use std::ops::ControlFlow;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn every_job_is_done_once_whatever_the_number_of_workers() {
        for workers in [0, 1, 3, 50] {
            let mut heard = Vec::new();
            let hear = |(_, job)| {
                heard.push(job);
                ControlFlow::Continue(())
            };
            share_out(20, workers, &AtomicBool::new(false), |worker, job, say| say((worker, job)), hear);
            heard.sort_unstable();
            assert_eq!(heard, (0..20).collect::<Vec<usize>>(), "{workers} workers");
        }
    }

    #[test]
    fn nothing_begins_after_a_stop() {
        let mut heard = 0;
        let hear = |()| {
            heard += 1;
            ControlFlow::Break(())
        };
        let interrupted = AtomicBool::new(false);
        share_out(1000, 2, &interrupted, |_, _, say| say(()), hear);
        assert_eq!(heard, 1);
        interrupted.store(true, std::sync::atomic::Ordering::Relaxed);
        share_out(1000, 2, &interrupted, |_, _, say| say(()), |()| -> ControlFlow<()> { panic!("a job was begun") });
    }
}
