//! What was captured of a repeat's packets.

use serde::{Deserialize, Serialize};

/// How much of each repeat's packets is captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureLimits {
    /// Packets that are kept of each end, the first ones.
    pub packets: u32,
    /// Bytes that are kept of each packet, the first ones.
    pub snap_bytes: u32,
}

/// The capture of a repeat. The packets themselves are in a file beside the records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capture {
    /// The file, in the folder of the run; `None` where there is none.
    pub file: Option<String>,
    /// Why there is none, or not of both ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What passed the client's device; of a loopback device, which is one for both ends, all that passed it.
    pub client: Option<CapturedEnd>,
    /// What passed the server's device, where it is one of its own.
    pub server: Option<CapturedEnd>,
    /// The file's content, on its way to it (pcapng).
    #[serde(skip)]
    pub pcapng: Vec<u8>,
}

/// The capture of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CapturedEnd {
    /// Packets that were kept.
    pub packets: u64,
    /// Packets after them, of which nothing was kept: the bound was reached (`PACKET_STATISTICS`).
    pub dropped: u64,
    /// Packets that were kept in part: they were longer than `snap_bytes` of the limits.
    pub cut: u64,
}

impl Capture {
    /// A capture that was not made.
    pub fn failed(why: impl Into<String>) -> Self {
        Self { error: Some(why.into()), ..Self::default() }
    }

    /// Takes the packets away, and says why they did not come to a file.
    pub fn lose(&mut self, why: impl Into<String>) {
        self.pcapng = Vec::new();
        self.file = None;
        self.error = Some(why.into());
    }

    /// What a reader of the repeat's figures has to know. The same for all repeats of a cell that ended alike, so that it is said once.
    pub fn remark(&self) -> String {
        let mut parts = vec!["its packets were captured, which costs a little time".to_owned()];
        for (name, end) in [("client", self.client), ("server", self.server)] {
            if let Some(CapturedEnd { packets, dropped, .. }) = end
                && dropped > 0
            {
                parts.push(format!("of the {name}'s packets only the first {packets} are kept (run.capture_packets)"));
            }
        }
        if let Some(error) = &self.error {
            parts.push(format!("the capture is not whole: {error}"));
        }
        parts.join("; ")
    }
}
