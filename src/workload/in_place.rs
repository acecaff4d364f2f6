//! A stream's sender that leaves its bytes where they lie (`MSG_ZEROCOPY`), and keeps count of what became of that.

use crate::measurement::Zerocopy;
use crate::sys::option::{SO_ZEROCOPY, next_completion, send_in_place};
use crate::sys::socket::{Until, set_int, wait};

use super::Failure;
use super::channel::Channel;
use super::endpoint::retry;
use super::meeting::Control;

/// Sends between two looks at the error queue.
const SENDS_BETWEEN_LOOKS: u64 = 16;

/// The sender.
#[derive(Debug)]
pub(super) struct InPlace {
    counts: Zerocopy,
}

impl InPlace {
    /// Allows sends in place on a connection.
    pub(super) fn new(channel: &Channel) -> Result<Self, Failure> {
        set_int(channel.fd(), SO_ZEROCOPY, 1)
            .map_err(|error| Failure::setting(SO_ZEROCOPY.name, "on", "sender", error))?;
        Ok(Self { counts: Zerocopy::default() })
    }

    /// Sends all of `bytes`, which must stay as they are, blocking.
    pub(super) fn send_all(
        &mut self,
        channel: &Channel,
        bytes: &[u8],
        control: &Control<'_>,
        progress: impl Fn() -> String,
    ) -> Result<(), Failure> {
        let mut sent = 0;
        while sent < bytes.len() {
            match send_in_place(channel.fd(), &bytes[sent..]) {
                Ok(len) => {
                    sent += len;
                    self.counts.sends += 1;
                    if self.counts.sends.is_multiple_of(SENDS_BETWEEN_LOOKS) {
                        self.drain(channel)?;
                    }
                }
                Err(error) if retry(&error) => {}
                // As many sends are under way as `net.core.optmem_max` allows.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    control.check(&progress)?;
                    self.await_completion(channel, control)?;
                    continue;
                }
                Err(error) => return Err(Failure::moving("streaming", error, &progress)),
            }
            // A completion wakes who waits for room, too.
            while sent < bytes.len() {
                channel.until_writable(control, &progress)?;
                if !self.drain(channel)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Waits until the kernel is done with every send.
    pub(super) fn finish(mut self, channel: &Channel, control: &Control<'_>) -> Result<Zerocopy, Failure> {
        self.drain(channel)?;
        while self.counts.completed < self.counts.sends {
            control.check(|| {
                let Zerocopy { sends, completed, .. } = self.counts;
                format!("{completed} of {sends} sends in place were completed")
            })?;
            self.await_completion(channel, control)?;
        }
        Ok(self.counts)
    }

    fn await_completion(&mut self, channel: &Channel, control: &Control<'_>) -> Result<(), Failure> {
        wait(channel.fd(), Until::Readable, control.patience())
            .map_err(|error| Failure::Call { doing: "waiting for completions".to_owned(), error })?;
        self.drain(channel).map(drop)
    }

    /// Takes all completions that are there. Whether there were any.
    fn drain(&mut self, channel: &Channel) -> Result<bool, Failure> {
        let before = self.counts.completed;
        while let Some(completion) = next_completion(channel.fd())
            .map_err(|error| Failure::Call { doing: "reading completions".to_owned(), error })?
        {
            self.counts.completed += completion.sends;
            if completion.copied {
                self.counts.copied += completion.sends;
            }
        }
        Ok(self.counts.completed > before)
    }
}
