//! Export, import and fork errors.

use crate::protocol::Problem;
use crate::store::StoreError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum TransferError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Failed(Problem),
}

impl From<TransferError> for Problem {
    fn from(error: TransferError) -> Self {
        match error {
            TransferError::Store(error) => error.into(),
            TransferError::Failed(problem) => problem,
        }
    }
}
