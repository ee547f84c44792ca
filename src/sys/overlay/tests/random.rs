use super::*;
use proptest::prelude::*;

const NAMES: &[&str] = &["a", "b", "c", "d", "d/f", "d/e", "d/e/g", "n", "n/o", "l", "d/n"];

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(NAMES)
}

fn operation() -> impl Strategy<Value = String> {
    prop_oneof![
        (name(), "[a-z]{0,4}").prop_map(|(name, text)| format!("printf '%s' '{text}' > {name}")),
        (name(), "[a-z]{1,4}").prop_map(|(name, text)| format!("echo '{text}' >> {name}")),
        name().prop_map(|name| format!("rm -rf {name}")),
        name().prop_map(|name| format!("rm -rf {name}; mkdir {name}")),
        name().prop_map(|name| format!("mkdir -p {name}")),
        (name(), name()).prop_map(|(from, to)| format!("mv {from} {to}")),
        (name(), name()).prop_map(|(from, to)| format!("mv -T {from} {to}")),
        (name(), name()).prop_map(|(from, to)| format!("ln -f {from} {to}")),
        (name(), name()).prop_map(|(from, to)| format!("ln -sfn {from} {to}")),
        (name(), name()).prop_map(|(from, to)| format!("cp -a {from} {to}")),
        (name(), 0_u32..8).prop_map(|(name, bits)| format!("chmod {bits}{bits}{bits} {name}")),
        (name(), 1990..2020).prop_map(|(name, year)| format!("touch -d {year}-01-01 {name}")),
        (name(), 0..100_000).prop_map(|(name, bytes)| format!("truncate -s {bytes} {name}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_operations_are_committed_exactly(operations in prop::collection::vec(operation(), 1..25), stop in 1_usize..60) {
        let place = Place::new(fill);
        let line = operations.join("\n");
        let Some(seen) = place.view(&line) else { return Ok(()) };
        let before = place.tree();
        let changes = [place.changes()];
        prop_assert_eq!(&place.tree(), &before, "{}", line);
        let mut steps = 0;
        let mut pace = || {
            steps += 1;
            if steps > stop { Err(io::Error::other("stopped")) } else { Ok(()) }
        };
        let done = commit_at_pace(&place.preview, &changes, &mut pace);
        let outcome = if let Ok(outcome) = done {
            outcome
        } else if let Some(outcome) = recover(&place.preview).unwrap() {
            outcome
        } else {
            // The commit had not started.
            prop_assert_eq!(&place.tree(), &before, "{}", line);
            commit(&place.preview, &changes).unwrap()
        };
        prop_assert!(outcome.is_whole(), "{}: {:?}", line, outcome);
        prop_assert_eq!(place.tree(), seen, "{}", line);
    }
}
