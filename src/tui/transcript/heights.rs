//! Row counts of all entries, which make it possible to find a position without visiting every entry.

/// Row counts and their partial sums, stored as a Fenwick tree, so updates and sums take logarithmic time.
#[derive(Debug, Default, Clone)]
pub(crate) struct Heights {
    rows: Vec<usize>,
    sums: Vec<usize>,
}

impl Heights {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn push(&mut self, rows: usize) {
        self.rows.push(rows);
        let at = self.rows.len();
        let (mut sum, mut step) = (rows, 1);
        while step < lowest_bit(at) {
            sum += self.sums[at - step - 1];
            step *= 2;
        }
        self.sums.push(sum);
    }

    pub(crate) fn get(&self, index: usize) -> usize {
        self.rows.get(index).copied().unwrap_or(0)
    }

    pub(crate) fn set(&mut self, index: usize, rows: usize) {
        let Some(before) = self.rows.get_mut(index) else { return };
        let before = std::mem::replace(before, rows);
        let mut at = index + 1;
        while before != rows && at <= self.sums.len() {
            self.sums[at - 1] = self.sums[at - 1] + rows - before;
            at += lowest_bit(at);
        }
    }

    /// Inserts entries at an index. This rebuilds all partial sums, which takes linear time.
    pub(crate) fn insert(&mut self, index: usize, rows: impl IntoIterator<Item = usize>) {
        drop(self.rows.splice(index..index, rows));
        let all = std::mem::take(&mut self.rows);
        self.sums.clear();
        self.sums.reserve(all.len());
        self.rows.reserve(all.len());
        for rows in all {
            self.push(rows);
        }
    }

    /// Returns the total number of rows in the entries before an index.
    pub(crate) fn rows_before(&self, index: usize) -> usize {
        let (mut at, mut sum) = (index.min(self.sums.len()), 0);
        while at > 0 {
            sum += self.sums[at - 1];
            at -= lowest_bit(at);
        }
        sum
    }

    pub(crate) fn total(&self) -> usize {
        self.rows_before(self.len())
    }
}

fn lowest_bit(number: usize) -> usize {
    number & number.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Edit {
        Push(usize),
        Set(usize, usize),
        Insert(usize, Vec<usize>),
    }

    fn edit() -> impl Strategy<Value = Edit> {
        prop_oneof![
            (0..40_usize).prop_map(Edit::Push),
            (any::<usize>(), 0..40_usize).prop_map(|(at, rows)| Edit::Set(at, rows)),
            (any::<usize>(), prop::collection::vec(0..9_usize, 0..5)).prop_map(|(at, rows)| Edit::Insert(at, rows)),
        ]
    }

    proptest! {
        #[test]
        fn height_sums_equal_a_naive_summation(edits in prop::collection::vec(edit(), 0..80)) {
            let (mut heights, mut plain) = (Heights::default(), Vec::new());
            for edit in edits {
                match edit {
                    Edit::Push(rows) => {
                        heights.push(rows);
                        plain.push(rows);
                    }
                    Edit::Set(at, rows) if !plain.is_empty() => {
                        let at = at % plain.len();
                        heights.set(at, rows);
                        plain[at] = rows;
                    }
                    Edit::Set(..) => {}
                    Edit::Insert(at, rows) => {
                        let at = at % (plain.len() + 1);
                        heights.insert(at, rows.iter().copied());
                        plain.splice(at..at, rows);
                    }
                }
                for index in 0..=plain.len() {
                    prop_assert_eq!(heights.rows_before(index), plain[..index].iter().sum::<usize>());
                }
                prop_assert_eq!(heights.total(), plain.iter().sum::<usize>());
            }
        }
    }
}
