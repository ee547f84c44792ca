use super::pieces::{Part, SplicedFile};
use proptest::prelude::*;
use std::io::Write;

fn pieces(content: &[u8]) -> SplicedFile {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    SplicedFile::new(file, content.len() as u64)
}

fn all(pieces: &mut SplicedFile) -> Vec<u8> {
    let length = pieces.len();
    pieces.read(0..length).unwrap()
}

proptest! {
    #[test]
    fn joined_pieces_equal_the_edited_text(
        content in proptest::collection::vec(any::<u8>(), 0..200),
        changes in proptest::collection::vec(
            (proptest::collection::vec((0usize..40, 0usize..20), 1..4), proptest::collection::vec(any::<u8>(), 0..10)),
            0..5,
        ),
    ) {
        let (mut pieces, mut expected) = (pieces(&content), content);
        for (ranges, new) in changes {
            let mut at = 0;
            let mut places = Vec::new();
            for (gap, length) in ranges {
                let start = (at + gap).min(expected.len());
                let end = (start + length).min(expected.len());
                places.push((start as u64..end as u64, new.clone()));
                at = end;
            }
            pieces.replace(&places);
            for (range, new) in places.iter().rev() {
                expected.splice(range.start as usize..range.end as usize, new.iter().copied());
            }
            prop_assert_eq!(all(&mut pieces), expected.clone());
        }
        let half = expected.len() / 2;
        prop_assert_eq!(pieces.read(half as u64..expected.len() as u64).unwrap(), &expected[half..]);
        let kept = pieces.parts().iter().filter(|part| matches!(part, Part::Old(range) if range.is_empty())).count();
        prop_assert!(kept == 0 || expected.is_empty());
    }

    #[test]
    fn text_is_found_across_the_boundary_of_two_parts(before in (1usize << 20) - 12..(1 << 20) + 4, twice in any::<bool>()) {
        let mut content = vec![b'.'; before];
        content.extend(b"needle\r\n");
        content.extend(vec![b'.'; 1 << 20]);
        if twice {
            content.extend(b"needle\n");
        }
        let mut pieces = pieces(&content);
        let found = pieces.find(&[b"needle\n".to_vec(), b"needle\r\n".to_vec()], 10).unwrap();
        let mut expected: Vec<_> = std::iter::once(before as u64..before as u64 + 8).collect();
        if twice {
            expected.push(content.len() as u64 - 7..content.len() as u64);
        }
        prop_assert_eq!(found, expected);
        prop_assert_eq!(pieces.lines_before(&[0, before as u64, content.len() as u64]).unwrap(), [0, 0, 1 + u64::from(twice)]);
    }
}
