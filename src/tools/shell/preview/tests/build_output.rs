//! Tests of build output and its sources: conflicts with other builds, modification times, and directories that
//! commands write to directly.

use super::unasked::{kept, project, ran};
use super::undecided::ended_with_it;
use super::*;
use crate::policy::BuildOutputMode;
use std::time::SystemTime;

fn modified(bench: &Bench, name: &str) -> SystemTime {
    bench.path(name).metadata().unwrap().modified().unwrap()
}

fn text(bench: &Bench, name: &str) -> String {
    String::from_utf8(bench.read(name)).unwrap()
}

/// Creates a project in which commands write to build directories directly.
fn direct() -> Option<Bench> {
    let mut bench = project("target/\n")?;
    bench.settings.command.sandbox.build_output = BuildOutputMode::Direct;
    bench.write("target/old", "old\n");
    bench.write("source", "one\n");
    Some(bench)
}

#[test]
fn a_conflict_in_build_output_discards_only_the_build_output() {
    let Some(bench) = project("target/\n") else { return };
    bench.write("target/shared", "one\n");
    bench.write("source", "one\n");
    let plan = ran(&bench, "echo two > source; echo mine >> target/shared; echo mine > target/own; echo said");
    bench.write("target/shared", "of another build\n");
    let result = kept(&bench, plan);
    assert_eq!(result.error, None);
    assert!(
        result.output_text.contains("said") && result.output_text.contains("`target` was discarded"),
        "{}",
        result.output_text
    );
    assert_eq!((text(&bench, "source"), text(&bench, "target/shared")), ("two\n".to_owned(), "of another build\n".to_owned()));
    assert!(!bench.path("target/own").exists());
    // A run with nothing else to apply still has its result.
    let plan = ran(&bench, "echo mine >> target/shared; echo said");
    bench.write("target/shared", "of a third build\n");
    let result = kept(&bench, plan);
    assert!(result.error.is_none() && result.output_text.contains("said"), "{result:?}");
    // A file moved out of the build directory cannot be left out.
    let plan = ran(&bench, "mv target/shared moved");
    bench.write("target/shared", "of a fourth build\n");
    assert_eq!(kept(&bench, plan).error.map(|error| error.code), Some(ErrorCode::Conflict));
    // A changed source is always a conflict, whatever happens to build output.
    let plan = ran(&bench, "echo three > source; echo mine >> target/shared");
    bench.write("target/shared", "of a fifth build\n");
    bench.write("source", "mine\n");
    assert_eq!(kept(&bench, plan).error.map(|error| error.code), Some(ErrorCode::Conflict));
}

#[test]
fn applied_files_keep_their_times_unless_a_build_ran_since() {
    let Some(bench) = project("target/\n") else { return };
    bench.write("target/out", "one\n");
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let line = "echo two > source; touch -d @1000000000 source";
    kept(&bench, ran(&bench, line));
    assert_eq!(modified(&bench, "source"), old);
    fs::remove_file(bench.path("source")).unwrap();
    let plan = ran(&bench, line);
    // Another build uses the old state of the source.
    bench.write("target/out", "of another build\n");
    assert_eq!(kept(&bench, plan).error, None);
    assert!(modified(&bench, "source") >= modified(&bench, "target/out"), "the next build must see that the source is newer");
}

#[test]
fn direct_build_output_is_written_immediately_and_kept() {
    let Some(bench) = direct() else { return };
    let plan = ran(&bench, "echo two > source; echo new > target/new; echo more >> target/old; mkdir -p build; echo x > build/a");
    assert_eq!((text(&bench, "target/new"), text(&bench, "target/old")), ("new\n".to_owned(), "old\nmore\n".to_owned()));
    assert_eq!(text(&bench, "source"), "one\n", "only build output is written before the decision");
    let counted = &effects(&plan).counted;
    let [target] = counted.as_slice() else { panic!("{counted:?}") };
    assert_eq!((target.path.as_str(), target.created, target.changed, target.direct), ("target", 1, 1, true));
    assert!(effects(&plan).files.iter().any(|file| file.path == "build/a"), "git does not ignore it");
    let before = modified(&bench, "source");
    std::thread::sleep(Duration::from_millis(20));
    drop(plan);
    assert_eq!(text(&bench, "source"), "one\n");
    assert!(modified(&bench, "source") > before, "build output must not seem newer than the source that stays");
    assert_eq!(text(&bench, "target/new"), "new\n");
    // Without a discard, times stay as they are.
    let before = modified(&bench, "source");
    let plan = ran(&bench, "echo built > target/new");
    assert!(effects(&plan).is_build_output());
    kept(&bench, plan);
    assert_eq!(modified(&bench, "source"), before);
}

#[test]
fn a_discarded_source_change_is_rebuilt_although_build_output_remains() {
    let Some(bench) = direct() else { return };
    if Command::new("make").arg("--version").stdout(Stdio::null()).status().is_err() {
        return eprintln!("skipped: no make");
    }
    bench.write("Makefile", "target/out: source\n\t@cp source target/out\n");
    kept(&bench, ran(&bench, "make -s && cat target/out"));
    for end in ["echo two > source", "rm source; echo two > source", "mv source aside; echo two > source"] {
        let plan = ran(&bench, &format!("sleep 0.02; {end}; make -s && cat target/out"));
        assert!(effects(&plan).output.contains("two"), "{}", effects(&plan).output);
        drop(plan);
        let plan = ran(&bench, "make -s && cat target/out");
        assert!(effects(&plan).output.contains("one"), "{end}: {}", effects(&plan).output);
        kept(&bench, plan);
    }
}

#[test]
fn forbidden_files_in_direct_build_output_are_removed() {
    let Some(bench) = direct() else { return };
    bench.write("secret", "s\n");
    symlink("old", bench.path("target/was")).unwrap();
    let plan = ran(
        &bench,
        "cd target; ln -s ../secret out; ln -s old in; echo x > .envrc; mkfifo pipe; mkdir .vscode; echo '{}' > .vscode/tasks.json",
    );
    let refused: Vec<&str> = effects(&plan).refused.iter().map(|refused| refused.path.as_str()).collect();
    for name in ["out", ".envrc", "pipe", ".vscode/tasks.json"] {
        assert!(refused.contains(&format!("target/{name}").as_str()), "{name}: {refused:?}");
        assert!(bench.path(&format!("target/{name}")).symlink_metadata().is_err(), "{name}");
    }
    for name in ["in", "was"] {
        assert!(bench.path(&format!("target/{name}")).symlink_metadata().is_ok(), "{name}");
    }
}

#[test]
fn only_existing_build_directories_are_written_directly() {
    let Some(mut bench) = direct() else { return };
    fs::remove_dir_all(bench.path("target")).unwrap();
    let counted = |bench: &Bench| {
        let plan = ran(bench, "mkdir -p target; echo x > target/a");
        effects(&plan).counted.iter().map(|counted| counted.direct).collect::<Vec<_>>()
    };
    assert_eq!(counted(&bench), [false], "a new directory is created in the copy");
    assert!(!bench.path("target").exists());
    fs::create_dir(bench.path("elsewhere")).unwrap();
    symlink(bench.path("elsewhere"), bench.path("target")).unwrap();
    assert_eq!(counted(&bench), [] as [bool; 0]);
    fs::remove_file(bench.path("target")).unwrap();
    bench.write("target/old", "old\n");
    assert_eq!(counted(&bench), [true]);
    bench.settings.command.sandbox.build_output = BuildOutputMode::Layer;
    fs::remove_file(bench.path("target/a")).unwrap();
    assert_eq!(counted(&bench), [false]);
}

#[test]
fn the_next_process_discards_undecided_effects() {
    let Some(mut bench) = direct() else { return };
    bench.settings.session.id = Some(SessionId::new("s"));
    let before = modified(&bench, "source");
    let plan = ran(&bench, "echo two > source; echo new > target/new");
    ended_with_it(&mut bench, plan);
    assert_eq!((left(&bench), modified(&bench, "source")), (1, before), "the effects wait for a decision");
    bench.router().recover(&[bench.root.join("base")], &|_| false, &|_| false);
    assert_eq!((left(&bench), text(&bench, "source")), (0, "one\n".to_owned()));
    assert!(modified(&bench, "source") > before);
}
