use super::*;
use std::time::Instant;

/// Run this test with `cargo test --release --lib figures -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn the_cost_of_ten_changes_among_a_hundred_thousand_files_is_measured() {
    let place = Place::new(|lower| {
        for directory in 0..1_000 {
            let directory = lower.join(format!("{}/{directory}", directory % 10));
            fs::create_dir_all(&directory).unwrap();
            for file in 0..100 {
                fs::write(directory.join(file.to_string()), "text\n").unwrap();
            }
        }
    });
    let line =
        "for n in 1 2 3 4 5 6; do echo new >> $n/1$n/$n; done; rm 7/17/7; mv 8/18/8 8/18/moved; echo x > 9/new; chmod 700 0/10/1";
    if place.view_only(line).is_none() {
        return;
    }
    let start = Instant::now();
    let changes = place.changes();
    let surveyed = start.elapsed();
    let count = changes.entries().len();
    commit(&place.preview, &[changes]).unwrap();
    eprintln!("{count} changes: read in {surveyed:?}, committed in {:?}", start.elapsed().saturating_sub(surveyed));
}
