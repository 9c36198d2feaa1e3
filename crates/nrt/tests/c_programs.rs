//! libtelltale_nrt as C and C++ programs meet it: installed, compiled against, run.

mod documented;
mod ending;
mod header;
mod installed;
mod programs;
