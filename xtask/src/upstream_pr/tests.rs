//! Pull requests on checkouts in temporary folders, with the git that is installed.
