use super::*;
use crate::protocol::ArtifactKind;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

const SMALL: ArtifactLimits = ArtifactLimits { one_bytes: 100, all_bytes: 250, count: 10 };

fn store(data: &TempDir, session: &str) -> ArtifactStore {
    ArtifactStore::with_limits(data.path(), Some(&SessionId::new(session)), SMALL)
}

fn new(name: &str) -> NewArtifact {
    NewArtifact { kind: ArtifactKind::ToolOutput, name: name.to_owned(), content_type: "text/plain".to_owned() }
}

fn keep(store: &ArtifactStore, name: &str, content: &[u8]) -> Artifact {
    let mut writer = store.begin(new(name)).unwrap();
    content.chunks(7).for_each(|part| writer.write(part).unwrap());
    writer.finish().unwrap()
}

/// Returns all files in the contents directory.
fn files(data: &TempDir) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![data.path().join("artifacts/contents")];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() { pending.push(entry.path()) } else { found.push(entry.path()) }
        }
    }
    found
}

#[test]
fn artifacts_are_found_by_uri_across_processes() {
    let data = TempDir::new().unwrap();
    let kept = keep(&store(&data, "s"), "output of ls", b"some text");
    assert_eq!((kept.uri.len(), kept.bytes), ("artifact:".len() + 24, 9));
    let other = store(&data, "another");
    let found = other.find(&kept.uri).unwrap();
    assert_eq!((fs::read(&found.path).unwrap().as_slice(), &found.artifact), (b"some text".as_slice(), &kept));
    let short = &kept.uri[..kept.uri.len() - 12];
    assert_eq!(other.find(short).unwrap().artifact, kept);
    assert_eq!(other.find(&kept.uri.to_uppercase().replace("ARTIFACT", "artifact")).unwrap().artifact, kept);
}

#[test]
fn identical_content_is_stored_once_and_shared_by_sessions() {
    let data = TempDir::new().unwrap();
    let (one, two) = (store(&data, "one"), store(&data, "two"));
    let first = keep(&one, "first", b"same");
    let second = keep(&two, "second", b"same");
    assert_eq!(first.uri, second.uri);
    assert_eq!(files(&data).len(), 1);
    assert_eq!(one.list().unwrap(), [first]);
    assert_eq!(two.list().unwrap(), [second]);
    keep(&two, "third", b"other");
    assert_eq!(two.list().unwrap().iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["second", "third"]);
}

#[test]
fn unfinished_artifacts_leave_no_files() {
    let data = TempDir::new().unwrap();
    let store = store(&data, "s");
    let mut writer = store.begin(new("a")).unwrap();
    writer.write(b"half").unwrap();
    assert_eq!(files(&data).len(), 1);
    drop(writer);
    assert_eq!(files(&data), [] as [PathBuf; 0]);
    assert_eq!(store.list().unwrap(), []);
}

#[test]
fn artifacts_up_to_the_size_limit_are_stored() {
    let data = TempDir::new().unwrap();
    let store = store(&data, "s");
    for (length, fits) in [(99, true), (100, true), (101, false)] {
        let mut writer = store.begin(new("a")).unwrap();
        let written = writer.write(&vec![b'a'; length]);
        assert_eq!(written.is_ok(), fits, "{length}: {written:?}");
    }
    let mut writer = store.begin(new("a")).unwrap();
    writer.write(&[b'a'; 60]).unwrap();
    assert!(writer.write(&[b'a'; 60]).unwrap_err().message.contains("the limit of 100 bytes"));
    writer.write(&[b'b'; 40]).unwrap();
    assert_eq!(writer.finish().unwrap().bytes, 100);
}

#[test]
fn the_least_recently_used_artifact_is_evicted_first_and_reported_as_evicted() {
    let data = TempDir::new().unwrap();
    let store = store(&data, "s");
    let first = keep(&store, "first", &[b'1'; 100]);
    let second = keep(&store, "second", &[b'2'; 100]);
    store.find(&first.uri).unwrap();
    let third = keep(&store, "third", &[b'3'; 100]);
    assert!(store.find(&second.uri).unwrap_err().message.contains("evicted for newer artifacts"));
    assert_eq!(store.list().unwrap(), [first.clone(), third]);
    assert_eq!(files(&data).len(), 2);
    let never = store.find("artifact:000000000000000000000000").unwrap_err();
    assert!(never.message.contains("unknown artifact artifact:"), "{never}");
    let back = keep(&store, "second", &[b'2'; 100]);
    assert_eq!(store.find(&back.uri).unwrap().artifact, back, "what was given up can be kept again");
    assert!(store.find(&first.uri).is_err());
}

#[test]
fn the_number_of_artifacts_is_limited() {
    let data = TempDir::new().unwrap();
    let store = store(&data, "s");
    let kept: Vec<Artifact> = (0..12).map(|number| keep(&store, "n", format!("{number}").as_bytes())).collect();
    assert_eq!(store.list().unwrap(), kept[2..]);
}

#[test]
fn invalid_uris_and_evicted_artifacts_have_different_errors() {
    let data = TempDir::new().unwrap();
    let store = store(&data, "s");
    keep(&store, "a", b"text");
    for given in ["artifact:", "artifact:../../etc/passwd", "artifact:abc", "artifact:%%%%%%%%%%%%%%%%", "artifact:éééééééééé"]
    {
        let error = store.find(given).unwrap_err();
        assert!(error.message.contains("is not an artifact URI"), "{given}: {error}");
    }
}

#[test]
fn damaged_content_is_never_returned_and_is_repaired_when_stored_again() {
    let data = TempDir::new().unwrap();
    let store = store(&data, "s");
    let kept = keep(&store, "a", b"text");
    fs::write(&files(&data)[0], "else").unwrap();
    assert!(store.find(&kept.uri).unwrap_err().message.contains("damaged"));
    keep(&store, "a", b"text");
    assert_eq!(fs::read(store.find(&kept.uri).unwrap().path).unwrap(), b"text");
    fs::remove_file(&files(&data)[0]).unwrap();
    assert!(store.find(&kept.uri).unwrap_err().message.contains("evicted"));
}

#[test]
fn the_next_start_cleans_up_after_a_crash() {
    let data = TempDir::new().unwrap();
    let first = store(&data, "s");
    let kept = keep(&first, "a", b"text");
    // Unfinished files of a process that has ended, and of a process that is running.
    let contents = data.path().join("artifacts/contents");
    fs::write(contents.join(".unfinished-dead"), "half").unwrap();
    let mut living = first.begin(new("living")).unwrap();
    living.write(b"more").unwrap();
    // Named, but not in the index.
    let hash = blake3::hash(b"orphan").to_hex();
    fs::create_dir_all(contents.join(&hash[..2])).unwrap();
    fs::write(contents.join(&hash[..2]).join(&hash[2..]), "orphan").unwrap();
    // In the index, but deleted.
    let lost = keep(&first, "lost", b"lost");
    let hash = blake3::hash(b"lost").to_hex();
    fs::remove_file(contents.join(&hash[..2]).join(&hash[2..])).unwrap();

    let next = store(&data, "s");
    assert_eq!(next.find(&kept.uri).unwrap().artifact, kept);
    assert!(!contents.join(".unfinished-dead").exists());
    let orphan = next.find(&format!("artifact:{}", &blake3::hash(b"orphan").to_hex()[..24])).unwrap();
    assert_eq!(orphan.artifact.bytes, 6);
    assert!(next.find(&lost.uri).is_err());
    living.write(b" to come").unwrap();
    let living = living.finish().unwrap();
    assert_eq!(fs::read(next.find(&living.uri).unwrap().path).unwrap(), b"more to come");
}

#[test]
fn a_damaged_index_loses_no_content() {
    let data = TempDir::new().unwrap();
    let kept = keep(&store(&data, "s"), "a", b"text");
    let index = data.path().join("artifacts/index.db");
    fs::write(&index, "this is no database, and it is long enough to be looked at as one ............................").unwrap();
    fs::remove_file(data.path().join("artifacts/index.db-wal")).ok();
    fs::remove_file(data.path().join("artifacts/index.db-shm")).ok();
    let found = store(&data, "s").find(&kept.uri).unwrap();
    assert_eq!((found.artifact.uri, found.artifact.bytes), (kept.uri, 4));
}

#[test]
fn concurrent_writers_lose_no_artifacts() {
    let data = TempDir::new().unwrap();
    let wide = ArtifactLimits { one_bytes: 1 << 20, all_bytes: 1 << 30, count: 10_000 };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let data = &data;
            scope.spawn(move || {
                let store = ArtifactStore::with_limits(data.path(), Some(&SessionId::new(format!("s{thread}"))), wide);
                for number in 0..20 {
                    let kept = keep(&store, "n", format!("content {}", number % 10 + thread).as_bytes());
                    assert!(store.find(&kept.uri).is_ok());
                }
                assert_eq!(store.list().unwrap().len(), 10);
            });
        }
    });
    assert_eq!(files(&data).len(), 13);
}

#[test]
fn stored_files_are_accessible_only_to_their_owner() {
    let data = TempDir::new().unwrap();
    let store = store(&data, "s");
    keep(&store, "a", b"one");
    let _unfinished = store.begin(new("b")).unwrap();
    let mut looked = 0;
    let mut pending = vec![data.path().join("artifacts")];
    while let Some(path) = pending.pop() {
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o077, 0, "{}", path.display());
        looked += 1;
        if metadata.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    assert!(looked > 4);
}

#[test]
fn an_unwritable_directory_is_an_error_that_names_the_path() {
    let data = TempDir::new().unwrap();
    fs::write(data.path().join("artifacts"), "in the way").unwrap();
    let Err(error) = store(&data, "s").begin(new("a")) else { panic!("there is no place for it") };
    assert!(error.message.contains("artifacts`: "), "{error}");
}
