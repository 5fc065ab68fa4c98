//! Tuning policies: which congestion control, windows and buffers the flows of a path get, as
//! rules that the kernel side and the simulator both execute.

mod compiled;

pub use compiled::{
    Action, Compiled, FLAG_SENDSTALL_IGNORE, FLAG_WATCH, LAW_BIC, LAW_CUBIC, LAW_FAST,
    LAW_HSTCP_LP, LAW_HTCP, LAW_SCALABLE, LAW_TABLE, LAW_VEGAS, LAW_WESTWOOD, OnDaemonLoss, Params,
    Prefix, Row, Rule, Side, TABLE_ROWS,
};
