//! One file per command.

pub mod agree;
pub mod check;
pub mod compare;
pub mod config;
pub mod doctor;
pub mod emulate;
pub mod export;
pub mod falsify;
pub mod figure;
pub mod history;
pub mod law;
pub mod linux;
pub mod list;
pub mod observe;
pub mod report;
pub mod run;
pub mod schema;
pub mod send;
pub mod serve;
pub mod set;
pub mod sweep;
pub mod top;
pub mod tune;
