//! Mounts a layout. Every path is opened before any of them is covered, and no path is looked up again through a
//! directory that the command can change.

use super::devices;
use super::filter::{limit_process_ids, limit_shared_memory, prefer_as_oom_victim};
use super::layout::{Layout, PathView, closest_view};
use super::mount::{self, MountScope, NO_DEVICES, NO_SETUID, READ_ONLY};
use super::{Confinement, LayeredDirectory, Persistence, ResourceLimits, View, diagnostics};
use crate::sys::path::{hold_name, hold_place};
use nix::errno::Errno;
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Divisor for the fraction of the machine's memory that the command's own directories may use in total.
const OWN_SHARE: u64 = 4;
/// Size in bytes of a file system that contains nothing but directories.
const EMPTY_SIZE: u64 = 1 << 20;
/// Divisor for the fraction of a command's memory limit that is reserved for System V shared memory. The rest is
/// available to the command's own directories.
const SHARED_MEMORY_SHARE: u64 = 4;
/// Name of the file that takes the place of every hidden file.
const NOTHING: &str = "nothing";
const NOBODY: &str = "nobody";

/// The existing entry at a path, and the mount that will cover it.
struct PlannedMount {
    is_directory: bool,
    is_socket: bool,
    mode: u32,
    /// Mount of existing content, if it has been created already.
    mount: Option<OwnedFd>,
    /// Whether the entry is an empty directory that will have other entries mounted inside it.
    furnished: bool,
}

/// Restricts what this process and its children see to the layout. Returns the layer directories.
pub(super) fn cover(confinement: &Confinement, layout: &Layout, links: &[(PathBuf, PathBuf)]) -> Result<Vec<File>, String> {
    let root = hold_place(Path::new("/")).map_err(during("`/`"))?;
    mount::keep_apart(&root).map_err(|error| diagnostics::no_mounts(&error))?;
    let mut layers = Vec::new();
    let mut pieces = BTreeMap::new();
    for (path, seat) in layout {
        if let Some(piece) = plan_mount(confinement, layout, path, *seat, &mut layers)? {
            pieces.insert(path.as_path(), piece);
        }
    }
    let everywhere = NO_SETUID | NO_DEVICES | if layout.get(Path::new("/")) == Some(&PathView::Writable) { 0 } else { READ_ONLY };
    mount::limit(&root, everywhere, MountScope::Below).map_err(during("making everything else read-only"))?;
    let furnished = pieces.keys().filter_map(|path| path.ancestors().skip(1).find(|above| pieces.contains_key(above)));
    let around_links = links.iter().filter_map(|(link, _)| link.ancestors().skip(1).find(|above| pieces.contains_key(above)));
    let furnished: Vec<_> = furnished.chain(around_links).map(Path::to_owned).collect();
    for path in furnished {
        if let Some(piece) = pieces.get_mut(path.as_path()) {
            piece.furnished = true;
        }
    }
    // The modes below are exact, so the umask is cleared.
    let umask = nix::sys::stat::umask(nix::sys::stat::Mode::empty());
    let ground = EmptyDirectories::new(own_size(&confinement.limits)).map_err(during("creating an empty directory"))?;
    ground.furnish(layout, &pieces, links)?;
    nix::sys::stat::umask(umask);
    for (number, (path, piece)) in pieces.into_iter().enumerate().filter(|(_, (path, _))| path.parent().is_some()) {
        let seat = layout[path];
        let mount = match piece.mount {
            Some(mount) => mount,
            None => ground.clone(number, seat, &piece).map_err(during(path.display()))?,
        };
        match open_covered(seat, path).and_then(|place| mount::attach(&mount, &place)) {
            // The program that was listening has ended, so there is nothing to hide.
            Err(error) if piece.is_socket && seat == PathView::Empty && is_missing(&error) => {}
            attached => attached.map_err(during(path.display()))?,
        }
    }
    let nothing = ground.empty_file().map_err(during("creating an empty file"))?;
    let processes = devices::show_processes().map_err(|error| diagnostics::no_processes(&error))?;
    limit_process_ids(&confinement.limits).map_err(during("limiting processes"))?;
    limit_shared_memory(confinement.limits.memory_bytes.map(|bytes| bytes / SHARED_MEMORY_SHARE));
    prefer_as_oom_victim();
    devices::protect_machine(&processes, &nothing).map_err(during("protecting `/proc`"))?;
    std::env::set_current_dir("/").map_err(during("`/`"))?;
    Ok(layers)
}

/// Returns a function that formats an error as `WHAT: WHY`.
pub(super) fn during(what: impl std::fmt::Display) -> impl FnOnce(io::Error) -> String {
    move |error| format!("{what}: {}", message_without_code(&error))
}

/// Returns an error's message without the error number that Rust appends.
fn message_without_code(error: &io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), |number| Errno::from_raw(number).desc().to_owned())
}

/// Opens a path and creates its mount. Returns `None` if no mount is needed.
fn plan_mount(
    confinement: &Confinement,
    layout: &Layout,
    path: &Path,
    seat: PathView,
    layers: &mut Vec<File>,
) -> Result<Option<PlannedMount>, String> {
    let around = closest_view(layout, path).map(|(_, seat)| seat);
    let place = match open_covered(seat, path) {
        Ok(place) => Some(place),
        Err(error) => match (seat, error.raw_os_error().map(Errno::from_raw)) {
            (PathView::Own | PathView::Substitute(_), Some(Errno::ENOENT | Errno::ENOTDIR))
                if around.is_some_and(PathView::is_blank) =>
            {
                None
            }
            (PathView::Terminals, _) => None,
            (seat, Some(Errno::ENOENT | Errno::ENOTDIR)) if may_be_missing(seat) => return Ok(None),
            // This path is only shown, and has been removed, replaced or made inaccessible since it was found.
            (PathView::Fixed, Some(Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES | Errno::ELOOP))
                if !is_root(confinement, path) =>
            {
                return Ok(None);
            }
            (PathView::Guarded { in_writable: false }, Some(Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES)) => return Ok(None),
            // A user without access to the path does not gain access with fewer rights.
            (PathView::Empty | PathView::Writable, Some(Errno::EACCES)) if !around.is_some_and(is_writable) => return Ok(None),
            (_, Some(Errno::ELOOP)) => return Err(format!("`{}` is a symlink now; try again", path.display())),
            _ => return Err(during(format!("`{}`", path.display()))(error)),
        },
    };
    let metadata = place.as_ref().map(File::metadata).transpose().map_err(during(path.display()))?;
    let is_directory = metadata.as_ref().is_none_or(std::fs::Metadata::is_dir);
    let is_socket = metadata.as_ref().is_some_and(|metadata| metadata.file_type().is_socket());
    let mode = metadata.map_or(0o700, |metadata| metadata.permissions().mode() & 0o7777);
    let mount = match (&place, seat) {
        (_, PathView::Own | PathView::Empty) => None,
        (_, PathView::Terminals) => Some(devices::terminals().map_err(during("mounting terminals"))?),
        (_, PathView::Substitute(number)) => {
            let content = hold_place(&confinement.substitutes[number].content).map_err(during(path.display()))?;
            let mount = bind_mount(&content, NO_SETUID | NO_DEVICES).map_err(during(path.display()))?;
            layers.push(content);
            Some(mount)
        }
        (None, _) => return Ok(None),
        (Some(_), PathView::Device) => {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            Some(devices::node(name).map_err(during(path.display()))?)
        }
        (Some(place), PathView::Writable) => Some(bind_mount(place, NO_SETUID | NO_DEVICES).map_err(during(path.display()))?),
        (Some(place), PathView::Fixed | PathView::Guarded { .. }) => {
            Some(bind_mount(place, READ_ONLY | NO_SETUID | NO_DEVICES).map_err(during(path.display()))?)
        }
        (Some(place), PathView::Root(number)) => {
            let View::CopyOnWrite(all) = &confinement.view else { return Ok(None) };
            let layer = all.iter().find(|layer| layer.directory == path).or(all.get(number));
            let layer = layer.filter(|layer| layer.directory == path);
            Some(layered_mount(
                place,
                layer.ok_or_else(|| format!("`{}`: no layer is configured for it", path.display()))?,
                Persistence::Process,
                layers,
            )?)
        }
        (Some(place), PathView::Cache(number)) => {
            Some(layered_mount(place, &confinement.caches[number], Persistence::Process, layers)?)
        }
    };
    Ok(Some(PlannedMount { is_directory, is_socket, mode, mount, furnished: seat == PathView::Own }))
}

/// Returns whether a path with this view is allowed not to exist.
fn may_be_missing(seat: PathView) -> bool {
    match seat {
        PathView::Own
        | PathView::Empty
        | PathView::Writable
        | PathView::Cache(_)
        | PathView::Substitute(_)
        | PathView::Device => true,
        PathView::Fixed | PathView::Guarded { .. } | PathView::Root(_) | PathView::Terminals => false,
    }
}

/// Opens a path that will be covered. A protected symlink is mounted over itself, so it can be neither removed nor
/// redirected.
fn open_covered(seat: PathView, path: &Path) -> io::Result<File> {
    if matches!(seat, PathView::Guarded { .. }) { hold_name(path) } else { hold_place(path) }
}

/// Returns whether a path is a workspace root, which is required to exist.
fn is_root(confinement: &Confinement, path: &Path) -> bool {
    confinement.roots.iter().any(|root| root == path)
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error().map(Errno::from_raw), Some(Errno::ENOENT | Errno::ENOTDIR))
}

fn is_writable(seat: PathView) -> bool {
    matches!(seat, PathView::Writable | PathView::Guarded { in_writable: true })
}

fn bind_mount(place: &File, limits: u64) -> io::Result<OwnedFd> {
    let mount = mount::clone(place)?;
    mount::limit(&mount, limits, MountScope::Below)?;
    Ok(mount)
}

pub(super) fn layered_mount(
    place: &File,
    layer: &LayeredDirectory,
    persistence: Persistence,
    layers: &mut Vec<File>,
) -> Result<OwnedFd, String> {
    let upper = hold_place(&layer.upper).map_err(during(format!("`{}`", layer.upper.display())))?;
    let work = hold_place(&layer.work).map_err(during(format!("`{}`", layer.work.display())))?;
    // Removes the mark of an earlier mount.
    let _ = std::fs::remove_dir_all(path_below_fd(&work, Path::new("work/incompat")));
    let mount = mount::layer(place, &upper, &work, persistence)
        .map_err(during(format!("mounting a copy-on-write view of `{}`", layer.directory.display())))?;
    layers.push(upper);
    Ok(mount)
}

/// Returns the size limit in bytes for `/tmp`, `/dev/shm` and the command's other directories. Together with shared
/// memory, they use at most the memory limit.
fn own_size(limits: &ResourceLimits) -> u64 {
    let machine = nix::sys::sysinfo::sysinfo().map_or(u64::MAX, |info| info.ram_total()) / OWN_SHARE;
    let limit = limits.memory_bytes.map(|bytes| (bytes - bytes / SHARED_MEMORY_SHARE).saturating_sub(EMPTY_SIZE));
    // The kernel treats 0 as "no limit".
    machine.min(limit.unwrap_or(u64::MAX)).max(EMPTY_SIZE)
}

/// Supplies empty directories from two file systems, one for writable and one for read-only directories. Each contains
/// a directory for every path that it covers, with mount points for the paths below.
struct EmptyDirectories {
    own: OwnedFd,
    empty: OwnedFd,
}

impl EmptyDirectories {
    fn new(own_size: u64) -> io::Result<Self> {
        let limits = NO_SETUID | NO_DEVICES;
        let make = |bytes: u64| mount::make(c"tmpfs", &[("size", &bytes.to_string()), ("mode", "0755")], limits);
        let (own, empty) = (make(own_size)?, make(EMPTY_SIZE)?);
        // Older kernels can clone only attached mounts. Both mounts are covered again later.
        let somewhere = hold_place(Path::new("/dev"))?;
        mount::attach(&own, &somewhere)?;
        mount::attach(&empty, &somewhere)?;
        Ok(Self { own, empty })
    }

    fn furnish(
        &self,
        layout: &Layout,
        pieces: &BTreeMap<&Path, PlannedMount>,
        links: &[(PathBuf, PathBuf)],
    ) -> Result<(), String> {
        let nothing = path_below_fd(&self.empty, Path::new(NOTHING));
        OpenOptions::new().write(true).create_new(true).mode(0o0).open(&nothing).map_err(during("creating an empty file"))?;
        let nobody = path_below_fd(&self.empty, Path::new(NOBODY));
        DirBuilder::new().mode(0o755).create(nobody).map_err(during("creating an empty directory"))?;
        let mut directories = BTreeMap::new();
        for (number, (path, piece)) in pieces.iter().enumerate() {
            // The closest planned path above this one, if it is an empty directory.
            let above = path.ancestors().skip(1).find(|above| pieces.contains_key(above));
            if let Some(directory) = above.and_then(|above| directories.get(above).map(|made: &PathBuf| (above, made))) {
                let point = directory.1.join(path.strip_prefix(directory.0).unwrap_or(path));
                if piece.is_directory {
                    create_directories_to(&point).map_err(during(path.display()))?;
                } else {
                    let parent = point.parent().map_or(Ok(()), create_directories_to);
                    parent.and_then(|()| File::create(&point)).map_err(during(path.display()))?;
                }
            }
            let seat = layout[*path];
            if seat.is_blank() && piece.is_directory && piece.furnished {
                let (from, mode) = if seat == PathView::Own { (&self.own, piece.mode) } else { (&self.empty, 0o755) };
                let made = path_below_fd(from, Path::new(&number.to_string()));
                DirBuilder::new().mode(mode).create(&made).map_err(during(path.display()))?;
                directories.insert(*path, made);
            }
        }
        for (link, to) in links {
            let Some(above) = link.ancestors().skip(1).find(|above| pieces.contains_key(above)) else { continue };
            let Some((directory, name)) = directories.get(above).zip(link.strip_prefix(above).ok()) else { continue };
            let made = directory.join(name);
            if made.symlink_metadata().is_err() {
                made.parent()
                    .map_or(Ok(()), create_directories_to)
                    .and_then(|()| symlink(to, &made))
                    .map_err(during(link.display()))?;
            }
        }
        Ok(())
    }

    /// Returns the mount for the path with this index.
    fn clone(&self, number: usize, seat: PathView, piece: &PlannedMount) -> io::Result<OwnedFd> {
        let (from, limits) = if seat == PathView::Own { (&self.own, 0) } else { (&self.empty, READ_ONLY) };
        let name = match piece {
            PlannedMount { is_directory: false, .. } => NOTHING.to_owned(),
            PlannedMount { furnished: false, .. } => NOBODY.to_owned(),
            _ => number.to_string(),
        };
        let mount = mount::clone_entry(from, &std::ffi::CString::new(name)?)?;
        mount::limit(&mount, limits | NO_SETUID | NO_DEVICES, MountScope::This)?;
        Ok(mount)
    }

    fn empty_file(&self) -> io::Result<File> {
        hold_entry(&self.empty, NOTHING)
    }
}

fn create_directories_to(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path)
}

/// Returns a path relative to an open descriptor, for calls that accept only paths.
fn path_below_fd(directory: &impl AsRawFd, path: &Path) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(path)
}

fn hold_entry(directory: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = nix::fcntl::OFlag::O_PATH | nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_CLOEXEC;
    Ok(File::from(nix::fcntl::openat(directory, name, flags, nix::sys::stat::Mode::empty())?))
}
