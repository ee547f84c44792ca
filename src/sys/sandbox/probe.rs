//! Sandbox probe. A separate process tests how well this system can confine a command to certain directories.

use super::filter::landlock_version;
use super::mount_plan::{during, layered_mount};
use super::namespaces::{ForkSide, enter};
use super::{Backend, Confinement, LayeredDirectory, Persistence, Probe, Tier};
use crate::sys::path::hold_place;
use nix::sys::wait::waitpid;
use nix::unistd::{geteuid, pipe2};
use rustix::fs::XattrFlags;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Argument that makes a helper probe the sandbox.
pub(in crate::sys) const PROBE: &str = "probe";
/// Time limit for the probe's result.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// Maximum number of mounts below a workspace to list in a message. Any further mounts are only counted.
const NAMED_MOUNTS: usize = 3;

#[derive(Debug, Serialize, Deserialize)]
struct Question {
    #[serde(with = "crate::sys::overlay::name::list")]
    roots: Vec<PathBuf>,
    #[serde(with = "crate::sys::overlay::name::list")]
    bases: Vec<PathBuf>,
}

/// Probes the sandbox for these roots. Layers are stored below `data_directory` or, if that is not possible, in memory.
/// Blocks for a few milliseconds, or for up to 20 s if a disk does not respond.
pub(crate) fn probe(program: &Path, roots: &[PathBuf], data_directory: &Path) -> Probe {
    run_probe(program, roots, data_directory).unwrap_or_else(|error| Probe {
        tier: Tier::Bare,
        missing: vec![format!("cannot determine what this system supports: {error}")],
        upper_base: None,
    })
}

fn run_probe(program: &Path, roots: &[PathBuf], data_directory: &Path) -> io::Result<Probe> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let mut child = Command::new(program)
        .args([crate::sys::supervisor::SUPERVISE, PROBE])
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let question = Question { roots: roots.to_vec(), bases: bases(data_directory) };
    ours.write_all(&serde_json::to_vec(&question)?)?;
    ours.shutdown(Shutdown::Write)?;
    ours.set_read_timeout(Some(ANSWER_LIMIT))?;
    let mut answer = Vec::new();
    if let Err(error) = ours.read_to_end(&mut answer) {
        // An unresponsive mount may block the helper for ever.
        let _ = child.kill();
        let late = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        let said = format!("no result within {} s; a disk may not be responding", ANSWER_LIMIT.as_secs());
        return Err(if late { io::Error::new(io::ErrorKind::TimedOut, said) } else { error });
    }
    child.wait()?;
    Ok(serde_json::from_slice(&answer)?)
}

/// Returns the directories that could contain layers, most preferred first.
fn bases(data_directory: &Path) -> Vec<PathBuf> {
    let in_memory = std::env::var_os("XDG_RUNTIME_DIR").map(|directory| PathBuf::from(directory).join("aye"));
    let shared = PathBuf::from(format!("/dev/shm/aye-{}", geteuid()));
    let private = [in_memory, Some(shared)].into_iter().flatten().filter(|path| path.is_absolute());
    std::iter::once(data_directory.to_owned()).chain(private).collect()
}

/// Returns the private directories that may still contain layers of processes that have ended.
pub(crate) fn abandoned_bases(data_directory: &Path) -> Vec<PathBuf> {
    bases(data_directory).into_iter().filter(|base| check_private(base).is_ok()).collect()
}

/// Runs in the helper: reads the request, probes the sandbox, and sends the result.
pub(in crate::sys) fn answer_probe() -> io::Result<()> {
    let mut asked = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut question = Vec::new();
    asked.read_to_end(&mut question)?;
    let question: Question = serde_json::from_slice(&question)?;
    let found = run_trial(question);
    asked.write_all(&serde_json::to_vec(&found)?)
}

/// A base directory that has been prepared with a pair of directories for each root.
struct ProbeDirectory {
    base: PathBuf,
    directory: PathBuf,
    layers: Vec<LayeredDirectory>,
}

fn run_trial(question: Question) -> Probe {
    let mut missing = Vec::new();
    let nested = mounts_below(&question.roots);
    let trials: Vec<ProbeDirectory> = if nested.is_empty() {
        let tried: Vec<_> = question.bases.iter().map(|base| ProbeDirectory::new(base, &question.roots)).collect();
        tried.into_iter().filter_map(|trial| trial.map_err(|why| missing.push(why)).ok()).collect()
    } else {
        missing.push(describe_nested(&nested));
        Vec::new()
    };
    let found = enter_and_try(&question.roots, &trials);
    for trial in &trials {
        trial.remove();
    }
    match found {
        Ok(ProbeResult { chosen: Some(number), .. }) => {
            Probe { tier: Tier::Layers, missing: Vec::new(), upper_base: Some(trials[number].base.clone()) }
        }
        Ok(ProbeResult { chosen: None, reasons }) => {
            missing.extend(reasons);
            Probe { tier: Tier::Namespaces, missing, upper_base: None }
        }
        Err(why) => {
            let tier = if landlock_version() > 0 { Tier::Rules } else { Tier::Bare };
            let mut missing = vec![why];
            if tier == Tier::Bare {
                missing.push(
                    "this kernel has no Landlock either; it needs Linux 5.13 or newer with `landlock` in `lsm=`".to_owned(),
                );
            }
            Probe { tier, missing, upper_base: None }
        }
    }
}

/// Result that the process in the namespaces reports.
#[derive(Debug, Serialize, Deserialize)]
struct ProbeResult {
    chosen: Option<usize>,
    reasons: Vec<String>,
}

fn enter_and_try(roots: &[PathBuf], trials: &[ProbeDirectory]) -> Result<ProbeResult, String> {
    let confinement = Confinement::new(Backend::Namespaces, roots.to_vec());
    let (hear, tell) = pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(|errno| during("creating a pipe")(errno.into()))?;
    match enter(&confinement) {
        Ok(ForkSide::Inside(inside)) => {
            let tried = first_that_works(trials);
            let found = inside.set_up(&confinement).map(|_| tried);
            let told = serde_json::to_vec(&found).map(|text| File::from(tell).write_all(&text));
            std::process::exit(i32::from(!matches!(told, Ok(Ok(())))))
        }
        Ok(ForkSide::Outside(outside)) => {
            drop(tell);
            let mut text = Vec::new();
            let heard = File::from(hear).read_to_end(&mut text);
            let _ = waitpid(outside.first, None);
            outside.clean_up();
            heard.map_err(during("reading from the first process"))?;
            serde_json::from_slice(&text).unwrap_or_else(|_| Err("the first process ended early".to_owned()))
        }
        Err(why) => Err(why),
    }
}

fn first_that_works(trials: &[ProbeDirectory]) -> ProbeResult {
    let mut reasons = Vec::new();
    for (number, trial) in trials.iter().enumerate() {
        match trial.layers.iter().try_for_each(check_layer) {
            Ok(()) => return ProbeResult { chosen: Some(number), reasons },
            Err(why) => reasons.push(why),
        }
    }
    ProbeResult { chosen: None, reasons }
}

/// Checks that a layer can be mounted and written to.
fn check_layer(layer: &LayeredDirectory) -> Result<(), String> {
    let place = hold_place(&layer.directory).map_err(during(format!("`{}`", layer.directory.display())))?;
    let view = layered_mount(&place, layer, Persistence::Process, &mut Vec::new())
        .map_err(|why| format!("no copy-on-write view: {why}"))?;
    let name = format!(".aye-probe-{}", std::process::id());
    let file = PathBuf::from(format!("/proc/self/fd/{}", view.as_raw_fd())).join(&name);
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
    match made.and_then(|_| std::fs::remove_file(&file)) {
        Ok(()) => Ok(()),
        // Commands cannot write to the directory either.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(format!("no copy-on-write view of `{}`: cannot write to it: {error}", layer.directory.display())),
    }
}

impl ProbeDirectory {
    fn new(base: &Path, roots: &[PathBuf]) -> Result<Self, String> {
        let what = |error| during(format!("no copy-on-write view with `{}`", base.display()))(error);
        let private = DirBuilder::new().recursive(true).mode(0o700).create(base).and_then(|()| check_private(base));
        private.map_err(what)?;
        let directory = base.join(format!("probe-{}-{}", std::process::id(), uuid::Uuid::new_v4().simple()));
        DirBuilder::new().mode(0o700).create(&directory).map_err(what)?;
        let layer = |(number, root): (usize, &PathBuf)| LayeredDirectory {
            directory: root.clone(),
            upper: directory.join(format!("upper-{number}")),
            work: directory.join(format!("work-{number}")),
        };
        let layers = roots.iter().enumerate().map(layer).collect();
        let trial = Self { base: base.to_owned(), directory, layers };
        for layer in &trial.layers {
            for directory in [&layer.upper, &layer.work] {
                DirBuilder::new().mode(0o700).create(directory).inspect_err(|_| trial.remove()).map_err(what)?;
            }
            let mark = rustix::fs::setxattr(&layer.upper, "user.aye", b"1", XattrFlags::empty());
            if let Err(errno) = mark {
                trial.remove();
                return Err(what(io::Error::other(format!("the file system does not support extended attributes ({errno})"))));
            }
        }
        Ok(trial)
    }

    /// Removes the directories, including those that overlayfs leaves without any permissions.
    fn remove(&self) {
        let _ = crate::sys::overlay::discard(&self.directory);
    }
}

/// Checks that the directory belongs to this user and that others cannot write to it. In a world-writable location,
/// another user may have created it first.
fn check_private(base: &Path) -> io::Result<()> {
    let metadata = std::fs::symlink_metadata(base)?;
    if metadata.is_dir() && metadata.uid() == geteuid().as_raw() {
        return if metadata.permissions().mode() & 0o022 == 0 {
            Ok(())
        } else {
            Err(io::Error::other("others may write there; remove that permission with `chmod go-w`"))
        };
    }
    Err(io::Error::other("not a directory owned by this user"))
}

/// Returns the mounts below the roots. The kernel refuses to create an overlay there, because the overlay would not
/// show them.
pub(super) fn mounts_below(roots: &[PathBuf]) -> Vec<PathBuf> {
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let points = table.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4)).map(unescaped);
    let mut below: Vec<_> = points.filter(|point| roots.iter().any(|root| point != root && point.starts_with(root))).collect();
    below.sort();
    below.dedup();
    below
}

/// Decodes a path in which the kernel has written special characters as a backslash followed by three octal digits.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let code = after
            .get(..3)
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        let coded = code.filter(|_| *first == b'\\');
        bytes.push(coded.unwrap_or(*first));
        rest = if coded.is_some() { &after[3..] } else { after };
    }
    PathBuf::from(OsStr::from_bytes(&bytes))
}

pub(super) fn describe_nested(nested: &[PathBuf]) -> String {
    let named: Vec<_> = nested.iter().take(NAMED_MOUNTS).map(|path| format!("`{}`", path.display())).collect();
    let more = nested.len().saturating_sub(NAMED_MOUNTS);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!(
        "no copy-on-write view: file systems are mounted inside the workspace ({}{more}); unmount those you do not need",
        named.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_unescaped() {
        assert_eq!(unescaped(br"/a\040b\134c\011"), PathBuf::from("/a b\\c\t"));
        assert_eq!(unescaped(br"/plain\"), PathBuf::from("/plain\\"));
    }
}
