//! Tests of layers whose effects have not been decided on yet, and of the process that runs next.

use super::unasked::{end, kept, project, ran};
use super::*;
use crate::tools::background::Commands;

const LINE: &str = "echo new > made.txt; echo more >> changed.txt; rm gone.txt; echo said";

/// Ends the session while the plan is still pending.
pub(super) fn ended_with_it(bench: &mut Bench, plan: Plan) {
    block_on(bench.settings.session.commands.end_all());
    drop(plan);
    bench.settings.session.commands = Commands::default();
}

/// Returns the bench of a session that ended before a decision on the effects was made, along with the effects and
/// their digest.
fn undecided() -> Option<(Bench, Effects, String)> {
    let mut bench = project("target/\n")?;
    bench.settings.session.id = Some(SessionId::new("s"));
    bench.write("changed.txt", "one\n");
    bench.write("gone.txt", "gone\n");
    let plan = ran(&bench, LINE);
    let (shown, digest) = (effects(&plan).clone(), end(&plan).digest.clone());
    ended_with_it(&mut bench, plan);
    Some((bench, shown, digest))
}

fn reopened(bench: &Bench, router: &Router, digest: &str) -> Result<Plan, ToolError> {
    router.recover(&[bench.root.join("base")], &|_| false, &|_| true);
    block_on(router.reopen_layer(call("RunCommand", json!({"command": LINE})), digest.to_owned()))
}

#[test]
fn undecided_effects_are_shown_and_can_be_applied_by_the_next_process() {
    let Some((mut bench, shown, digest)) = undecided() else { return };
    assert_eq!(left(&bench), 1);
    let before = tree(&bench.settings.workspace);
    // Each process that ends without a decision leaves them to the next one.
    for _ in 0..3 {
        let plan = reopened(&bench, &bench.router(), &digest).unwrap();
        assert_eq!((effects(&plan), &end(&plan).digest), (&shown, &digest));
        assert_eq!(tree(&bench.settings.workspace), before, "nothing happened yet");
        ended_with_it(&mut bench, plan);
        assert_eq!(left(&bench), 1);
    }
    let plan = reopened(&bench, &bench.router(), &digest).unwrap();
    let result = kept(&bench, plan);
    assert!(result.error.is_none() && result.output_text.contains("said"), "{result:?}");
    assert_eq!((bench.read("made.txt"), bench.read("changed.txt")), (b"new\n".to_vec(), b"one\nmore\n".to_vec()));
    assert!(!bench.path("gone.txt").exists());
    assert_eq!(left(&bench), 0);
}

#[test]
fn undecided_effects_that_changed_are_discarded() {
    let layer = |bench: &Bench| {
        let views = previews(&bench.root.join("base"));
        fs::read_dir(views).unwrap().next().unwrap().unwrap().path()
    };
    type Meddle<'a> = &'a dyn Fn(&Bench);
    let cases: [(&str, Meddle<'_>); 6] = [
        ("a file that they replace", &|bench| bench.write("changed.txt", "two\n")),
        ("a file that they create", &|bench| bench.write("made.txt", "mine\n")),
        ("a file that they delete", &|bench| fs::remove_file(bench.path("gone.txt")).unwrap()),
        ("new content", &|bench| fs::write(layer(bench).join("upper-0/made.txt"), "other\n").unwrap()),
        ("one more effect", &|bench| fs::write(layer(bench).join("upper-0/more.txt"), "more\n").unwrap()),
        ("the record of the run", &|bench| fs::write(layer(bench).join("ended.json"), "{}").unwrap()),
    ];
    for (name, meddle) in cases {
        let Some((bench, _, digest)) = undecided() else { return };
        meddle(&bench);
        let before = tree(&bench.settings.workspace);
        let error = reopened(&bench, &bench.router(), &digest).unwrap_err();
        assert_eq!(error.code, ErrorCode::Conflict, "{name}: {error}");
        assert_eq!((tree(&bench.settings.workspace), left(&bench)), (before, 0), "{name}");
    }
    let Some((bench, _, digest)) = undecided() else { return };
    let error = reopened(&bench, &bench.router(), digest.trim_start_matches("2:")).unwrap_err();
    assert!(error.message.contains("another version of aye"), "{error}");
}

#[test]
fn undecided_effects_remain_valid_if_their_files_were_only_touched() {
    let Some((bench, shown, digest)) = undecided() else { return };
    bench.write("changed.txt", "one\n");
    fs::rename(bench.path("gone.txt"), bench.path("away")).unwrap();
    fs::copy(bench.path("away"), bench.path("gone.txt")).unwrap();
    let plan = reopened(&bench, &bench.router(), &digest).unwrap();
    assert_eq!(effects(&plan), &shown);
    let result = kept(&bench, plan);
    assert!(result.error.is_none(), "{result:?}");
    assert_eq!(bench.read("changed.txt"), b"one\nmore\n".to_vec());
    assert!(!bench.path("gone.txt").exists());
}

#[test]
fn an_approval_lost_in_a_crash_applies_nothing_and_is_reported() {
    let Some((bench, _, _)) = undecided() else { return };
    let before = tree(&bench.settings.workspace);
    for _ in 0..2 {
        let recovered = bench.router().recover(&[bench.root.join("base")], &|_| true, &|_| false);
        let [result] = &recovered.settled[..] else { panic!("{recovered:?}") };
        assert_eq!(result.error.as_ref().map(|error| error.code), Some(ErrorCode::Cancelled));
        assert_eq!((tree(&bench.settings.workspace), left(&bench)), (before.clone(), 1));
    }
    bench.router().recover(&[bench.root.join("base")], &|_| false, &|_| false);
    assert_eq!(left(&bench), 0);
}

#[test]
fn an_undecided_layer_is_kept_for_its_session_and_removed_with_the_session() {
    let base = |bench: &Bench| [bench.root.join("base")];
    let Some((mut bench, _, _)) = undecided() else { return };
    assert_eq!(undecided_use(&base(&bench)).len(), 1);
    recover(&base(&bench), None);
    bench.settings.session.id = Some(SessionId::new("other"));
    bench.router().recover(&base(&bench), &|_| false, &|_| true);
    assert_eq!(left(&bench), 1, "another session leaves it alone");
    assert!(prune_undecided(&base(&bench), 0, true) > 0 && left(&bench) == 1);
    forget_undecided(&base(&bench), &SessionId::new("other"));
    assert_eq!(left(&bench), 1);
    forget_undecided(&base(&bench), &SessionId::new("s"));
    assert_eq!(left(&bench), 0);
    let Some((bench, _, _)) = undecided() else { return };
    assert_eq!(prune_undecided(&base(&bench), u64::MAX, false), 0);
    assert!(prune_undecided(&base(&bench), 0, false) > 0 && left(&bench) == 0);
    // The journal has a decision, or the outcome of the call.
    let Some((bench, _, _)) = undecided() else { return };
    bench.router().recover(&base(&bench), &|_| false, &|_| false);
    assert_eq!(left(&bench), 0);
    let Some((bench, _, _)) = undecided() else { return };
    let router = bench.router();
    router.recover(&base(&bench), &|_| false, &|_| true);
    router.outcome_persisted(Some(&call("RunCommand", json!({})).tool_call_id));
    assert_eq!(left(&bench), 0);
}

/// Returns the only layer in a bench.
fn layer_of(bench: &Bench) -> PathBuf {
    fs::read_dir(previews(&bench.root.join("base"))).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn a_record_that_names_files_outside_its_layer_is_not_followed() {
    let places: [fn(&Bench, &Path) -> PathBuf; 2] = [|bench, _| bench.root.join("secret"), |_, layer| layer.join("..")];
    for place in places {
        let Some((bench, _, digest)) = undecided() else { return };
        let layer = layer_of(&bench);
        let secret = bench.root.join("secret");
        fs::create_dir(&secret).unwrap();
        fs::write(secret.join("key.txt"), "of another user\n").unwrap();
        let record = fs::read_to_string(layer.join("ended.json")).unwrap();
        let upper = layer.join("upper-0").to_string_lossy().into_owned();
        assert!(record.contains(&upper), "{record}");
        fs::write(layer.join("ended.json"), record.replace(&upper, &place(&bench, &layer).to_string_lossy())).unwrap();
        let error = reopened(&bench, &bench.router(), &digest).unwrap_err();
        assert!(error.message.contains("names files outside its layer"), "{error}");
        assert_eq!((left(&bench), fs::read_to_string(secret.join("key.txt")).unwrap().as_str()), (0, "of another user\n"));
    }
}

#[test]
fn a_layer_that_is_not_a_private_directory_of_this_user_is_not_opened() {
    let aside = |bench: &Bench| bench.root.join("aside");
    let chown = |path: &Path| std::os::unix::fs::chown(path, Some(65_534), None);
    type Meddle<'a> = &'a dyn Fn(&Bench, &Path) -> bool;
    let cases: [(&str, Meddle<'_>); 3] = [
        ("others can read it", &|_, layer| fs::set_permissions(layer, fs::Permissions::from_mode(0o755)).is_ok()),
        ("it is a symlink", &|bench, layer| {
            fs::rename(layer, aside(bench)).is_ok() && std::os::unix::fs::symlink(aside(bench), layer).is_ok()
        }),
        // Only root can give a directory to another user.
        ("it belongs to another user", &|_, layer| chown(layer).is_ok()),
    ];
    for (name, meddle) in cases {
        let Some((bench, _, digest)) = undecided() else { return };
        if !meddle(&bench, &layer_of(&bench)) {
            continue;
        }
        assert!(undecided_use(&[bench.root.join("base")]).is_empty(), "{name}");
        let before = tree(&bench.settings.workspace);
        assert!(reopened(&bench, &bench.router(), &digest).is_err(), "{name}");
        // The layer is left to its owner.
        assert_eq!((tree(&bench.settings.workspace), left(&bench)), (before, 1), "{name}");
    }
}
