use super::{Control, SLICE, meet};
use crate::measurement::Outcome;
use crate::units::Span;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

#[test]
fn a_server_that_never_listens_is_a_time_out_and_one_that_left_calls_off() {
    let interrupted = AtomicBool::new(false);
    let control = Control::new(Span(20_000_000), &interrupted);
    control.begin();
    let (server, client) = meet(&control);
    let failure = client.until_listening().expect_err("nothing was said");
    assert_eq!(failure.outcome(), Outcome::TimedOut);
    drop(server);
    assert_eq!(client.until_listening().expect_err("nobody is there").outcome(), Outcome::Failed);
}

/// A virtual guest sleeps for up to 2.56 s before the work begins, so that repeats sample the timer tick.
#[test]
fn what_passes_before_the_work_begins_is_not_of_its_time() {
    let interrupted = AtomicBool::new(false);
    let control = Control::new(Span(20_000_000), &interrupted).with_connections(2);
    let ends = [&control, &control.others[0]];
    std::thread::sleep(Duration::from_millis(30));
    for end in ends {
        assert!(end.check(String::new).is_ok() && end.check_at(Instant::now(), String::new).is_ok());
        assert_eq!(end.patience(), SLICE);
    }
    let begun = Instant::now();
    control.begin();
    std::thread::sleep(Duration::from_millis(30));
    // A second call moves nothing.
    control.begin();
    for end in ends {
        assert!(end.check_at(begun, String::new).is_ok());
        let failure = end.check(|| "3 of 4 had arrived".to_owned()).expect_err("its time is over");
        assert_eq!(failure.to_string(), "timed out after 20.0 ms: 3 of 4 had arrived");
    }
}
