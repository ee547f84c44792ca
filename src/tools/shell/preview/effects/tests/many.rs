//! Tests of lists with a very large number of effects, and of the announcement of large copies.

use super::*;
use crate::protocol::Effects;
use crate::sys::allocator::{release_free_memory, share_heaps};
use crate::tools::shell::preview::direct_output::DirectlyWritten;
use crate::tools::shell::preview::ended_run::{RunEffects, RunEnd};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use std::process::Stdio;

/// Number of files in each directory.
const FILES: usize = 1_000;
/// Environment variable through which the test below passes the number of directories to its child process.
const MEASURED: &str = "AYE_TEST_MANY_EFFECTS";
/// Number of directories in an ordinary test run. With 100, creating the files takes longer than everything else.
const DIRECTORIES: usize = 20;
/// Memory that a list may use, in KiB: a fixed amount, plus an amount per directory. For 100,000 effects, the total is
/// 64 MB.
const LIST_KIB: u64 = 16 * 1024;
const DIRECTORY_KIB: u64 = 48 * 1024 / 100;
/// Memory that may still be in use once the list has been dropped, in KiB.
const LEFTOVER_KIB: u64 = 8 * 1024;

/// A real directory with a layer over it, in which no command has run.
struct Layer {
    _directory: TempDir,
    settings: ToolSettings,
    layered: LayeredDirectory,
    began: overlay::Time,
}

impl Layer {
    fn new(upper: Option<&Path>, fill: impl FnOnce(&Path)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let (ws, own) = (root.join("ws"), root.join("layer"));
        let place = upper.unwrap_or(&own);
        let layered = LayeredDirectory { directory: ws.clone(), upper: place.join("upper"), work: place.join("work") };
        for path in [&ws, &layered.upper, &layered.work] {
            fs::create_dir_all(path).unwrap();
        }
        fill(&ws);
        let began = overlay::mark(place).unwrap();
        Self { _directory: directory, settings: settings(ws, root.join("home")), layered, began }
    }

    /// Reads the changes in the layer and lists them.
    fn effects(&self) -> (Vec<Changes>, RunEffects) {
        let mut changes = vec![overlay::changes(&self.layered, self.began).unwrap()];
        let end = RunEnd {
            ended: "exit 0".to_owned(),
            output: String::new(),
            denied: Vec::new(),
            notes: Vec::new(),
            stopped: false,
            direct: DirectlyWritten::default(),
        };
        let effects = end.effects(&mut changes, &self.settings);
        (changes, effects)
    }
}

fn fill(root: &Path, directories: usize, text: &str) {
    for directory in 0..directories {
        let directory = root.join(format!("d{directory}"));
        fs::create_dir(&directory).unwrap();
        for file in 0..FILES {
            fs::write(directory.join(format!("file{file}")), text).unwrap();
        }
    }
}

/// Returns one of this process's memory figures, in KiB.
fn memory(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Lists the changes in a layer. Checks the peak memory use, and that the memory has been freed afterwards.
fn list_within_memory(layer: &Layer, most_kib: u64, check: impl FnOnce(&Changes, &Effects)) {
    release_free_memory();
    // Reset the peak, so that it does not include earlier lists. Without permission, it does.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let before = memory("VmRSS:");
    let (changes, listed) = layer.effects();
    let peak = memory("VmHWM:").saturating_sub(before);
    println!("peak {peak} KiB");
    assert!(peak < most_kib, "{peak} KiB");
    check(&changes[0], &listed.effects);
    drop((changes, listed));
    release_free_memory();
    let left = memory("VmRSS:").saturating_sub(before);
    assert!(left < LEFTOVER_KIB, "{left} KiB");
}

/// Runs in a process of its own, because it measures the memory of the whole process.
#[test]
#[ignore = "a part of another test"]
fn lists_many_effects_within_memory() {
    let Ok(directories) = std::env::var(MEASURED) else { return };
    let directories: usize = directories.parse().unwrap();
    let (all, most_kib) = ((directories * FILES) as u64, LIST_KIB + DIRECTORY_KIB * directories as u64);
    share_heaps();
    // Load the program's own code before measuring.
    let small = Layer::new(None, |_| ());
    fs::write(small.layered.upper.join("file"), "new\n").unwrap();
    drop(small.effects());
    let layer = Layer::new(None, |ws| fill(ws, directories, "old\n"));
    let upper = &layer.layered.upper;
    let at = |name: &str, number: usize| upper.join(format!("{name}{number}"));
    fill(upper, directories, "new\n");
    list_within_memory(&layer, most_kib, |changes, effects| {
        let is_changed = |change: &Change| change.before.is_some() && change.after.is_some() && !change.same_content;
        assert_eq!(changes.entries().iter().filter(|change| is_changed(change)).count() as u64, all);
        assert_eq!((effects.files.len(), effects.more_files), (MAX_FILES, all - MAX_FILES as u64));
        assert_eq!(effects.files[0].kind, EffectKind::Changed { bytes_before: 4, bytes_after: 4, binary: false });
    });
    (0..directories).for_each(|number| fs::rename(at("d", number), at("new", number)).unwrap());
    list_within_memory(&layer, most_kib, |changes, effects| {
        let is_created = |change: &Change| change.before.is_none() && change.kind() == Some(NodeKind::File);
        assert_eq!(changes.entries().iter().filter(|change| is_created(change)).count() as u64, all);
        let names: usize = effects.groups.iter().map(|group| group.files.len()).sum();
        let listed = MAX_GROUPED.min(directories * FILES);
        assert_eq!((effects.files.len(), names, effects.more_files), (0, listed, all - listed as u64));
    });
    (0..directories).for_each(|number| fs::remove_dir_all(at("new", number)).unwrap());
    (0..directories).for_each(|number| mknod(&at("d", number), SFlag::S_IFCHR, Mode::empty(), makedev(0, 0)).unwrap());
    list_within_memory(&layer, most_kib, |changes, effects| {
        let is_deleted = |change: &Change| change.after.is_none() && change.kind() == Some(NodeKind::File);
        assert_eq!(changes.entries().iter().filter(|change| is_deleted(change)).count() as u64, all);
        assert_eq!((effects.files.len(), effects.more_files), (directories, 0));
        assert!(effects.files.iter().all(|file| file.kind == EffectKind::DirectoryDeleted { files: FILES as u64 }));
    });
    println!("measured");
}

#[test]
fn lists_of_many_effects_are_complete_and_fit_in_memory() {
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--nocapture"])
        .arg("tools::shell::preview::effects::tests::many::lists_many_effects_within_memory")
        .env(MEASURED, DIRECTORIES.to_string())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && printed.contains("measured"), "{printed}\n{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn a_large_copy_to_another_file_system_is_announced() {
    let Ok(elsewhere) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("skipped: there is no /dev/shm");
        return;
    };
    let copied = Layer::new(Some(elsewhere.path()), |_| ());
    let renamed = Layer::new(None, |_| ());
    let announced = |layer: &Layer, bytes: u64| {
        fs::File::create(layer.layered.upper.join("large")).unwrap().set_len(bytes).unwrap();
        layer.effects().1.proposal.notes.join("\n")
    };
    if !copied.effects().0[0].must_be_copied() {
        eprintln!("skipped: /dev/shm and the temporary directory are on one file system");
        return;
    }
    assert_eq!(announced(&copied, 300 << 20), "applying the changes copies 300.0 MB to another file system");
    assert_eq!(announced(&copied, 1 << 20), "");
    assert_eq!(announced(&renamed, 300 << 20), "");
}
