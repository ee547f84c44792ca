use super::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use tempfile::TempDir;

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    (directory, root)
}

/// Checks that the directory contains exactly these names, and thus no temporary file.
#[track_caller]
fn only(root: &Path, names: &[&str]) {
    let mut there: Vec<_> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    there.sort();
    assert_eq!(there, names);
}

#[test]
fn a_replaced_file_keeps_its_mode() {
    let (_directory, root) = place();
    let file = root.join("f");
    for mode in [0o644, 0o600, 0o755, 0o640, 0o666] {
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        replace(&file, b"new", &PreImage::hash(b"old"), Parents::MustExist).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, mode);
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }
    only(&root, &["f"]);
}

#[test]
fn writing_new_content_clears_set_id_bits() {
    let (_directory, root) = place();
    let file = root.join("f");
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o4755)).unwrap();
    replace(&file, b"new", &PreImage::hash(b"old"), Parents::MustExist).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o755);
}

#[test]
fn a_changed_file_is_not_replaced() {
    let (_directory, root) = place();
    let file = root.join("f");
    fs::write(&file, "theirs").unwrap();
    let changed = |before| matches!(replace(&file, b"new", &before, Parents::Create), Err(WriteError::Changed));
    assert!(changed(PreImage::hash(b"old")));
    assert!(changed(PreImage::Absent));
    assert_eq!(fs::read(&file).unwrap(), b"theirs");
    only(&root, &["f"]);
    fs::remove_file(&file).unwrap();
    assert!(changed(PreImage::hash(b"old")));
    fs::create_dir(&file).unwrap();
    assert!(changed(PreImage::hash(b"old")) && changed(PreImage::Absent));
    only(&root, &["f"]);
}

#[test]
fn a_link_in_place_of_the_file_is_neither_followed_nor_replaced() {
    let (_directory, root) = place();
    fs::create_dir(root.join("out")).unwrap();
    fs::write(root.join("out/secret"), "old").unwrap();
    symlink("out/secret", root.join("f")).unwrap();
    symlink("out", root.join("d")).unwrap();
    let old = PreImage::hash(b"old");
    assert!(matches!(replace(&root.join("f"), b"new", &old, Parents::Create), Err(WriteError::Changed)));
    assert!(matches!(replace(&root.join("d/secret"), b"new", &old, Parents::Create), Err(WriteError::Changed)));
    assert!(replace(&root.join("d/new/x"), b"new", &PreImage::Absent, Parents::Create).is_err());
    assert_eq!(fs::read(root.join("out/secret")).unwrap(), b"old");
    only(&root.join("out"), &["secret"]);
    only(&root, &["d", "f", "out"]);
}

#[test]
fn other_hard_links_keep_the_old_content() {
    let (_directory, root) = place();
    fs::write(root.join("other"), "old").unwrap();
    fs::hard_link(root.join("other"), root.join("f")).unwrap();
    replace(&root.join("f"), b"new", &PreImage::hash(b"old"), Parents::MustExist).unwrap();
    assert_eq!(fs::read(root.join("other")).unwrap(), b"old");
}

#[test]
fn directories_are_created_only_on_request() {
    let (_directory, root) = place();
    let file = root.join("a/b/f");
    let missing = replace(&file, b"new", &PreImage::Absent, Parents::MustExist);
    assert!(matches!(missing, Err(WriteError::NoParent(parent)) if parent == root.join("a/b")));
    only(&root, &[]);
    replace(&file, b"new", &PreImage::Absent, Parents::Create).unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"new");
}

#[test]
fn concurrent_creators_of_a_secret_get_the_same_value() {
    for short in [None, Some("too short")] {
        let (_directory, root) = place();
        let file = root.join("key");
        if let Some(text) = short {
            fs::write(&file, text).unwrap();
        }
        let made: Vec<_> = std::thread::scope(|scope| {
            let make = |number: u8| {
                let file = &file;
                scope.spawn(move || read_or_create(file, &[number; 32]).unwrap())
            };
            let all: Vec<_> = (1..=12).map(make).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(made.iter().all(|secret| *secret == made[0]), "{made:?}");
        assert_eq!(fs::read(&file).unwrap(), made[0]);
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    }
}

#[test]
fn reads_are_limited_in_size() {
    let (_directory, root) = place();
    let file = root.join("f");
    fs::write(&file, "12345").unwrap();
    assert_eq!(read(&file, 5).unwrap(), b"12345");
    assert!(matches!(read(&file, 4), Err(ReadError::TooLarge { bytes: 5, limit: 4 })));
    // The file reports a size of 0 but has content.
    assert!(
        matches!(read(&PathBuf::from(format!("/proc/{}/status", std::process::id())), 10), Err(ReadError::TooLarge { .. }))
            || !cfg!(target_os = "linux")
    );
}

#[test]
fn the_fingerprint_of_a_file_equals_that_of_its_content() {
    let (_directory, root) = place();
    let file = root.join("f");
    for bytes in [0, 1, 300_000, 64 << 20, (64 << 20) + 1] {
        let mut content = vec![b'a'; bytes];
        fs::write(&file, &content).unwrap();
        let print = Fingerprint::hash(&content);
        assert_eq!(Fingerprint::from_file(&file).unwrap(), print, "{bytes}");
        for at in [0, bytes.saturating_sub(1)].into_iter().filter(|at| *at < bytes) {
            content[at] = b'b';
            assert_ne!(Fingerprint::hash(&content), print, "{bytes} {at}");
            content[at] = b'a';
        }
        content.push(b'a');
        assert_ne!(Fingerprint::hash(&content), print, "{bytes}");
    }
}

#[test]
fn an_append_keeps_the_content_and_the_mode() {
    let (_directory, root) = place();
    let file = root.join("f");
    for size in [0usize, 1, 256 * 1024, 700_001] {
        let content: Vec<u8> = (0..size).map(|index| (index % 251) as u8).collect();
        fs::write(&file, &content).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let mut seen = Vec::new();
        let before = append::scan(&file, &mut |chunk| seen.extend_from_slice(chunk)).unwrap();
        assert!(seen == content && before == PreImage::hash(&content));
        append::append(&file, b"more", &before, Parents::MustExist, &|| false).unwrap();
        assert_eq!(fs::read(&file).unwrap(), [content.as_slice(), b"more"].concat());
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o640);
    }
    only(&root, &["f"]);
}

#[test]
fn nothing_is_appended_to_a_changed_file_or_after_cancellation() {
    let (_directory, root) = place();
    let file = root.join("f");
    fs::write(&file, "theirs").unwrap();
    let appended = |before| append::append(&file, b"more", &before, Parents::Create, &|| false);
    assert!(matches!(appended(PreImage::hash(b"mine")), Err(WriteError::Changed)));
    assert!(matches!(appended(PreImage::Absent), Err(WriteError::Changed)));
    fs::remove_file(&file).unwrap();
    symlink("elsewhere", &file).unwrap();
    assert!(matches!(appended(PreImage::hash(b"theirs")), Err(WriteError::Changed)));
    fs::remove_file(&file).unwrap();
    fs::write(&file, "theirs").unwrap();
    let stopped = append::append(&file, b"more", &PreImage::hash(b"theirs"), Parents::Create, &|| true);
    // If the file system shares blocks, there is nothing to stop.
    if stopped.is_err() {
        assert_eq!(fs::read(&file).unwrap(), b"theirs");
    }
    only(&root, &["f"]);
}

#[test]
fn a_replaced_file_keeps_its_extended_attributes() {
    let (_directory, root) = place();
    let file = root.join("f");
    fs::write(&file, "old").unwrap();
    let set = rustix::fs::setxattr(&file, "user.origin", b"here", rustix::fs::XattrFlags::empty());
    if let Err(error) = set {
        println!("skipped: no extended attributes on this file system ({error})");
        return;
    }
    let is = |file: &Path, content: &[u8]| {
        let mut value = [0; 16];
        let length = rustix::fs::getxattr(file, "user.origin", &mut value[..]).unwrap();
        assert_eq!((&value[..length], fs::read(file).unwrap().as_slice()), (&b"here"[..], content));
    };
    replace(&file, b"new", &PreImage::hash(b"old"), Parents::MustExist).unwrap();
    is(&file, b"new");
    append::append(&file, b"er", &PreImage::hash(b"new"), Parents::MustExist, &|| false).unwrap();
    is(&file, b"newer");
    let write = |real: PathBuf, content: &[u8], before, like| transaction::Step {
        real,
        what: transaction::PathOperation::Write { content: content.to_vec(), before, like, executable: None },
    };
    transaction::commit(&[write(file.clone(), b"patched", PreImage::hash(b"newer"), None)]).unwrap();
    is(&file, b"patched");
    let moved = root.join("moved");
    transaction::commit(&[write(moved.clone(), b"elsewhere", PreImage::Absent, Some(file))]).unwrap();
    is(&moved, b"elsewhere");
}

/// Returns a temporary file that is ready to replace the old one, along with the old file's metadata.
fn ready<'a>(directory: &'a std::os::fd::OwnedFd, old: &[u8]) -> (replace::Temporary<'a>, nix::sys::stat::FileStat) {
    let seen = replace::stat_if_unchanged(directory, "f".as_ref(), &blake3::hash(old)).unwrap();
    let write = |file: &mut std::fs::File| Ok(io::Write::write_all(file, b"new")?);
    (replace::Temporary::create(directory, Some(&seen), write).unwrap(), seen)
}

#[test]
fn changes_saved_between_the_last_check_and_the_rename_are_kept() {
    type Save = fn(&Path);
    let saves: [(Save, &[u8]); 4] = [
        (|file| fs::write(file, "theirs").unwrap(), b"theirs"),
        (
            |file| {
                fs::write(file.with_extension("swp"), "by its name").unwrap();
                fs::rename(file.with_extension("swp"), file).unwrap();
            },
            b"by its name",
        ),
        // The length and the time are those of the old file.
        (
            |file| {
                let time = fs::metadata(file).unwrap().modified().unwrap();
                fs::write(file, "odd").unwrap();
                fs::File::options().append(true).open(file).unwrap().set_modified(time).unwrap();
            },
            b"odd",
        ),
        (|_| {}, b"new"),
    ];
    for (save, after) in saves {
        let (_directory, root) = place();
        let file = root.join("f");
        fs::write(&file, "old").unwrap();
        let directory = crate::sys::path::open_directory(&root).unwrap();
        let (temporary, seen) = ready(&directory, b"old");
        save(&file);
        let again = |aside: &std::ffi::OsStr| replace::stat_if_unchanged(&directory, aside, &blake3::hash(b"old")).map(drop);
        let published = temporary.publish_over("f".as_ref(), &seen, &again);
        assert_eq!(published.is_ok(), after == b"new", "{published:?}");
        assert_eq!(fs::read(&file).unwrap(), after);
        only(&root, &["f"]);
    }
}

#[test]
fn rolling_back_does_not_remove_a_file_that_replaced_the_new_one() {
    let (_directory, root) = place();
    let file = root.join("f");
    fs::write(&file, "old").unwrap();
    let directory = crate::sys::path::open_directory(&root).unwrap();
    let (mut temporary, _) = ready(&directory, b"old");
    temporary.swap("f".as_ref()).unwrap();
    fs::write(&file, "theirs").unwrap();
    assert!(temporary.swap_back("f".as_ref()).is_err());
    let aside = root.join(temporary.name());
    drop(temporary);
    assert_eq!((fs::read(&file).unwrap(), fs::read(aside).unwrap()), (b"theirs".to_vec(), b"old".to_vec()));
}

#[test]
fn concurrent_edits_never_lose_changes_made_in_an_editor() {
    let (_directory, root) = place();
    let file = root.join("f");
    fs::write(&file, "0;").unwrap();
    let over = std::sync::atomic::AtomicBool::new(false);
    let begins = |start: &str| fs::read(&file).is_ok_and(|content| content.starts_with(start.as_bytes()));
    let lost = std::thread::scope(|scope| {
        let editor = scope.spawn(|| {
            let lost = (1..100).map(|round| format!("{round};")).find(|save| {
                fs::write(root.join("swp"), save).unwrap();
                fs::rename(root.join("swp"), &file).unwrap();
                // For a moment, the new file of a rejected edit may be in place.
                !(0..100_000).any(|_| {
                    std::thread::yield_now();
                    begins(save)
                })
            });
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            lost
        });
        while !over.load(std::sync::atomic::Ordering::Relaxed) {
            let content = fs::read(&file).unwrap();
            let _ = replace(&file, &[content.as_slice(), b"+"].concat(), &PreImage::hash(&content), Parents::MustExist);
        }
        editor.join().unwrap()
    });
    assert_eq!(lost, None, "{:?}", fs::read_to_string(&file));
}

/// Returns an access control list with entries for the owner, one user, the group, the mask and others.
fn access_list(user: u16) -> Vec<u8> {
    let entry = |tag: u16, rights: u16, id: u32| [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat();
    let nobody = u32::MAX;
    let entries =
        [entry(1, 6, nobody), entry(2, user, 4321), entry(4, 4, nobody), entry(0x10, 6, nobody), entry(0x20, 0, nobody)];
    [2u32.to_le_bytes().to_vec(), entries.concat()].concat()
}

#[test]
fn every_kind_of_write_keeps_the_access_list_and_adds_none() {
    type Write = fn(&Path);
    let ways: [Write; 3] = [
        |file| replace(file, b"new", &PreImage::hash(b"old"), Parents::MustExist).unwrap(),
        |file| append::append(file, b"new", &PreImage::hash(b"old"), Parents::MustExist, &|| false).unwrap(),
        |file| {
            let what = transaction::PathOperation::Write {
                content: b"new".to_vec(),
                before: PreImage::hash(b"old"),
                like: None,
                executable: None,
            };
            transaction::commit(&[transaction::Step { real: file.to_owned(), what }]).unwrap();
        },
    ];
    const ACCESS: &str = "system.posix_acl_access";
    let list_of = |file: &Path| {
        let mut value = [0; 256];
        rustix::fs::getxattr(file, ACCESS, &mut value[..]).ok().map(|length| value[..length].to_vec())
    };
    for way in ways {
        let (_directory, root) = place();
        let (listed, plain) = (root.join("listed"), root.join("plain"));
        fs::write(&listed, "old").unwrap();
        fs::write(&plain, "old").unwrap();
        fs::set_permissions(&plain, fs::Permissions::from_mode(0o640)).unwrap();
        let flags = rustix::fs::XattrFlags::empty();
        if let Err(error) = rustix::fs::setxattr(&listed, ACCESS, &access_list(6), flags) {
            println!("skipped: no access lists on this file system ({error})");
            return;
        }
        rustix::fs::setxattr(&root, "system.posix_acl_default", &access_list(4), flags).unwrap();
        way(&listed);
        way(&plain);
        assert_eq!((list_of(&listed), list_of(&plain)), (Some(access_list(6)), None));
        assert_eq!(fs::metadata(&plain).unwrap().mode() & 0o777, 0o640);
    }
}
