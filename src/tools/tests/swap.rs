//! Tests of file tools in a directory that is repeatedly exchanged with a symlink that leads outside.

use super::*;
use nix::fcntl::{RenameFlags, renameat2};
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns the number of rounds, which an environment variable can increase.
fn rounds() -> usize {
    std::env::var("AYE_SWAP_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(30)
}

/// Exchanges two names over and over until `stop` is set.
fn swap(one: &Path, other: &Path, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        renameat2(nix::fcntl::AT_FDCWD, one, nix::fcntl::AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE).unwrap();
    }
}

/// Returns every path in a directory with its content.
fn state(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(state(&path));
        }
        found.push((path.clone(), fs::read(&path).unwrap_or_default()));
    }
    found.sort();
    found
}

#[test]
fn a_link_swapped_in_after_the_check_does_not_escape_the_workspace() {
    let bench = Bench::new();
    for name in ["ws/d/sub", "outside/sub", "outside/private"] {
        fs::create_dir_all(bench.root.join(name)).unwrap();
    }
    for name in ["secret", "x", "sub/x", "sub/hidden-name", "private/y", "hidden-name", "secret-hidden-name"] {
        fs::write(bench.root.join("outside").join(name), "hidden-text").unwrap();
    }
    symlink("../outside", bench.path("l")).unwrap();
    let before = state(&bench.root.join("outside"));
    let calls = [
        ("WriteFile", json!({"path": "d/x", "content": "mine"})),
        ("ReadFile", json!({"path": "d/x"})),
        ("ReadFile", json!({"path": "d/secret"})),
        ("ReadFile", json!({"path": "d/hidden"})),
        ("EditFile", json!({"path": "d/x", "oldText": "mine", "newText": "other"})),
        ("EditFile", json!({"path": "d/x", "oldText": "-text", "newText": "other"})),
        ("WriteFile", json!({"path": "d/sub/deep/new", "content": "mine"})),
        ("CreateDirectory", json!({"path": "d/made/deep"})),
        ("ListDirectory", json!({"path": "d"})),
        ("ListDirectory", json!({"path": ".", "recursive": true})),
        ("Glob", json!({"pattern": "**/*"})),
        ("Glob", json!({"pattern": "d/*"})),
        ("Grep", json!({"pattern": ".", "path": "."})),
        ("Grep", json!({"pattern": "text", "path": "d"})),
        ("Copy", json!({"source": "d/x", "destination": "copied"})),
        ("Copy", json!({"source": "d", "destination": "all"})),
        ("Move", json!({"source": "d/x", "destination": "d/sub/moved"})),
        ("Move", json!({"source": "d/secret", "destination": "taken"})),
        ("Delete", json!({"path": "d/secret"})),
        ("Delete", json!({"path": "d/private", "recursive": true})),
        ("Delete", json!({"path": "d/sub", "recursive": true})),
        ("Delete", json!({"path": "d/made", "recursive": true})),
        ("Delete", json!({"path": "copied"})),
        ("Delete", json!({"path": "all", "recursive": true})),
    ];
    let stop = AtomicBool::new(false);
    let router = bench.router();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let workspace = &bench.settings.workspace;
    let (mut ran, mut outcomes) = (0, [0_usize; 2]);
    std::thread::scope(|scope| {
        let (one, other, stop) = (bench.path("d"), bench.path("l"), &stop);
        scope.spawn(move || swap(&one, &other, stop));
        for _ in 0..rounds() {
            for (tool, arguments) in &calls {
                let Ok(plan) = runtime.block_on(router.plan(call(tool, arguments.clone()))) else { continue };
                // Outside paths are judged as such, so the call never runs.
                let inside = |action: &Action| match action {
                    Action::Read { target } | Action::Write { target } | Action::Delete { target } => {
                        target.real.starts_with(workspace)
                    }
                    _ => false,
                };
                if !plan.actions.iter().all(inside) {
                    continue;
                }
                let permit = Permit::for_test(plan.actions.clone());
                let result = runtime.block_on(router.run(plan, permit, context()));
                ran += 1;
                outcomes[usize::from(result.error.is_some())] += 1;
                let escaped = result.text_for_model().contains("hidden-");
                if escaped {
                    stop.store(true, Ordering::Relaxed);
                    panic!("{tool} {arguments}: {result:?}");
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    eprintln!("{ran} calls ran, {} succeeded, {} were refused", outcomes[0], outcomes[1]);
    assert_eq!(state(&bench.root.join("outside")), before);
    assert!(outcomes[0] > 0, "no call succeeded, so nothing was tested");
    let left: Vec<_> = state(workspace).into_iter().filter(|(path, _)| path.display().to_string().contains(".aye-")).collect();
    assert_eq!(left, [], "an attempt left something behind");
}
