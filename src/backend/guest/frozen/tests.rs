//! What is kept, what is pruned, and what a digest sees.

use super::{FACTS, Facts, Frozen, FrozenStore, MAKING, MEMORY, STATE, VERSION, digest};
use crate::backend::guest::protocol::Hello;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

#[test]
fn a_machine_that_a_run_goes_on_from_is_not_pruned() {
    let cache = tempfile::tempdir().expect("a folder");
    let store = FrozenStore::below(cache.path());
    let [one, other] = ["0123456789abcdef", "fedcba9876543210"].map(|half| half.repeat(2));
    for key in [&one, &other] {
        let folder = store.folder.join(key);
        fs::create_dir_all(&folder).expect("a folder");
        for file in [STATE, MEMORY] {
            fs::write(folder.join(file), key).expect("written");
        }
        let saved = |file: &str| digest(&folder.join(file)).expect("a digest");
        let facts = Facts {
            version: VERSION,
            key: key.clone(),
            image: String::new(),
            qemu: String::new(),
            hello: Hello::default(),
            state_sha256: saved(STATE),
            memory_sha256: saved(MEMORY),
        };
        fs::write(folder.join(FACTS), serde_json::to_vec(&facts).expect("JSON")).expect("written");
    }
    let load = || Frozen::load(&store.folder.join(&one), &one).expect("whole");
    let (first, second) = (load().expect("there"), load().expect("there"));
    let keys = |removed: Vec<super::FrozenEntry>| removed.into_iter().map(|entry| entry.key).collect::<Vec<_>>();
    assert_eq!(keys(store.prune(0, None).expect("pruned")), [other]);
    drop(first);
    assert!(store.prune(0, None).expect("pruned").is_empty(), "one of the two goes on");
    drop(second);
    assert_eq!(keys(store.prune(0, None).expect("pruned")), [one.as_str()]);
    assert!(load().is_none());
}

#[test]
fn what_is_no_machine_any_more_is_shown_and_pruned() {
    let cache = tempfile::tempdir().expect("a folder");
    let store = FrozenStore::below(cache.path());
    assert_eq!(store.list().expect("nothing yet").len(), 0);
    let key = "0123456789abcdef".repeat(2);
    let bare = "fedcba9876543210".repeat(2);
    for name in [key.as_str(), &bare, &format!("{MAKING}x"), &format!("{key}.lock")] {
        let folder = cache.path().join("machines").join(name);
        fs::create_dir_all(&folder).expect("made");
        fs::write(folder.join("memory"), [1; 10_000]).expect("written");
    }
    fs::write(cache.path().join("machines").join(&key).join("machine.json"), "{").expect("written");
    let entries = store.list().expect("listed");
    let mut keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    keys.sort_unstable();
    assert_eq!(keys, [key.as_str(), &bare]);
    assert!(entries.iter().all(|entry| entry.image.is_none() && entry.bytes > 0));
    assert_eq!(store.prune(u64::MAX, None).expect("enough room").len(), 0);
    assert_eq!(store.prune(0, None).expect("pruned").len(), 2);
    assert_eq!(store.list().expect("listed").len(), 0);
}

#[test]
fn a_digest_sees_content_and_place_and_not_holes() {
    let folder = tempfile::tempdir().expect("a folder");
    let make = |name: &str, writes: &[(u64, &[u8])]| {
        let path = folder.path().join(name);
        let file = File::create(&path).expect("a file");
        file.set_len(1 << 20).expect("a length");
        for (at, bytes) in writes {
            file.write_all_at(bytes, *at).expect("written");
        }
        digest(&path).expect("a digest")
    };
    let plain = make("plain", &[(300_000, b"abc")]);
    assert_eq!(plain, make("zeros", &[(300_000, b"abc"), (500_000, &[0; 4096])]));
    assert_ne!(plain, make("other", &[(300_000, b"abd")]));
    assert_ne!(plain, make("moved", &[(400_000, b"abc")]));
    assert_ne!(make("empty", &[]), plain);
}
