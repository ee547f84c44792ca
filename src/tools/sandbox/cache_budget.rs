//! Measures the size of cache layers and removes the least recently used ones.

use super::caches::{LAYERS, ONCE, remove, try_lock};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// Maximum depth of directories to examine.
const MAX_DEPTH: usize = 64;

/// Disk usage of cache layers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CacheUse {
    pub count: u64,
    pub bytes: u64,
}

struct CacheLayer {
    directory: PathBuf,
    used: SystemTime,
    bytes: u64,
}

/// Measures all layers below these directories.
pub(crate) fn cache_use(bases: &[PathBuf]) -> CacheUse {
    let layers = layers(bases);
    CacheUse { count: layers.len() as u64, bytes: layers.iter().map(|layer| layer.bytes).sum() }
}

/// Removes layers that are not in use, least recently used first, until the remaining ones fit the budget. With
/// `dry_run`, nothing is removed. Returns the number and total size of the layers removed.
pub(crate) fn prune_caches(bases: &[PathBuf], budget_bytes: u64, dry_run: bool) -> CacheUse {
    let mut layers = layers(bases);
    layers.sort_by_key(|layer| layer.used);
    let mut left: u64 = layers.iter().map(|layer| layer.bytes).sum();
    let mut freed = CacheUse::default();
    for layer in layers {
        if left <= budget_bytes {
            break;
        }
        if dry_run || mark_for_removal(&layer.directory) {
            left -= layer.bytes;
            freed = CacheUse { count: freed.count + 1, bytes: freed.bytes + layer.bytes };
        }
    }
    freed
}

/// Renames a layer before removing it, so no command ever finds a partial layer. If the removal is interrupted, the
/// next sweep completes it. Returns `false` if the layer is in use.
fn mark_for_removal(directory: &Path) -> bool {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let Ok(Some(lock)) = try_lock(directory) else { return false };
    let name = format!("{ONCE}gone-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let aside = directory.with_file_name(name);
    if std::fs::rename(directory, &aside).is_err() {
        return false;
    }
    remove(&aside);
    drop(lock);
    true
}

fn layers(bases: &[PathBuf]) -> Vec<CacheLayer> {
    let entries = bases.iter().flat_map(|base| std::fs::read_dir(base.join(LAYERS)).into_iter().flatten().flatten());
    let kept = entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with(ONCE));
    let layer = |directory: PathBuf| {
        let used = directory.join("lock").metadata().and_then(|metadata| metadata.modified()).ok()?;
        let bytes = bytes_below(&directory);
        Some(CacheLayer { directory, used, bytes })
    };
    kept.filter_map(|entry| layer(entry.path())).collect()
}

/// Measures the bytes allocated below a directory without following symlinks.
pub(in crate::tools) fn bytes_below(directory: &Path) -> u64 {
    directory_bytes(directory, 0)
}

fn directory_bytes(directory: &Path, depth: usize) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let of_each = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() && depth < MAX_DEPTH => directory_bytes(&entry.path(), depth + 1),
        // `blocks` is in units of 512 bytes on every file system, without holes.
        Ok(metadata) => metadata.blocks() * 512,
        Err(_) => 0,
    });
    of_each.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, FileTimes};
    use std::time::Duration;

    #[test]
    fn the_least_recently_used_cache_layer_is_pruned_first_unless_in_use() {
        let base = tempfile::tempdir().expect("a directory");
        let layers = base.path().join(LAYERS);
        let layer = |name: &str, days: u64| {
            let directory = layers.join(name);
            std::fs::create_dir_all(directory.join("upper/a")).expect("made");
            std::fs::write(directory.join("upper/a/file"), vec![b'x'; 64 << 10]).expect("written");
            let lock = File::create(directory.join("lock")).expect("made");
            let used = SystemTime::now() - Duration::from_secs(days * 86_400);
            lock.set_times(FileTimes::new().set_modified(used)).expect("set");
            directory
        };
        let (old, older, new) = (layer("old", 20), layer("older", 30), layer("new", 0));
        layer("once-1-1", 90);
        let bases = [base.path().to_owned(), base.path().join("nowhere")];
        let all = cache_use(&bases);
        assert!(all.count == 3 && all.bytes >= 3 * (64 << 10), "{all:?}");
        assert_eq!(prune_caches(&bases, all.bytes, false), CacheUse::default());
        let budget = all.bytes / 3;
        assert_eq!(prune_caches(&bases, budget, true).count, 2);
        assert!(old.exists() && older.exists());
        let held = try_lock(&older).expect("locked").expect("free");
        assert_eq!(prune_caches(&bases, all.bytes * 2 / 3, false).count, 1);
        assert!(older.exists() && !old.exists() && new.exists(), "the older one is in use");
        drop(held);
        assert_eq!(prune_caches(&bases, budget, false).count, 1);
        assert!(!older.exists() && new.exists());
    }
}
