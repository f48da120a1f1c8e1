// The files and folders that an interrupted process must not leave behind. Whoever makes one
// registers it; a signal handler removes all that are registered, and lets the process end.
#ifndef XLA_PROFILER_BASE_FILES_UNFINISHED_FILES_H_
#define XLA_PROFILER_BASE_FILES_UNFINISHED_FILES_H_

#include <string>

namespace meridian {

// Registers a file while it lives, or, when the path ends in a slash, a folder with all that is in
// it. Begin before the file is made, and end when it has been removed or given its final name. The
// name must be one that nobody else has. Of more than 4,096 at a time the others are not
// registered.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(std::string path);
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  // Of the registry; negative when it was full.
  int slot_ = -1;
};

// Removes what is registered and there; links are not followed. Safe in a signal handler. The
// process must end afterwards: threads that register or unregister a file wait from then on.
void RemoveUnfinishedFiles();

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_FILES_UNFINISHED_FILES_H_
