# The C and C++ package: headers, libraries, what find_package and pkg-config look for.
# Component runtime is what programs need when they run, development what is needed to build against the library.
include(CMakePackageConfigHelpers)

set(fl_in_python_package FALSE)
if(SKBUILD AND PROJECT_IS_TOP_LEVEL)
  set(fl_in_python_package TRUE)
endif()
set(fl_targets fastlinalg)
if(FASTLINALG_CBLAS)
  list(APPEND fl_targets fastlinalg_cblas)
endif()
if(FASTLINALG_STATIC)
  list(APPEND fl_targets fastlinalg_static)
endif()
if(NOT SKBUILD)  # a wheel cannot hold links: every name of the library would be a copy of it
  set_target_properties(${fl_targets} PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endif()

# lib, never lib64: consumers look below the prefix of a Python package too.
install(TARGETS ${fl_targets} EXPORT fastlinalgTargets
  LIBRARY DESTINATION lib COMPONENT runtime NAMELINK_COMPONENT development
  ARCHIVE DESTINATION lib COMPONENT development)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/cpp/include/fastlinalg" DESTINATION include COMPONENT development)
install(EXPORT fastlinalgTargets NAMESPACE fastlinalg:: DESTINATION lib/cmake/fastlinalg COMPONENT development)
set(fl_library_dir lib)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/fastlinalgConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/fastlinalgConfig.cmake" INSTALL_DESTINATION lib/cmake/fastlinalg
  PATH_VARS fl_library_dir)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/fastlinalgConfigVersion.cmake"
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/fastlinalgConfig.cmake" "${PROJECT_BINARY_DIR}/fastlinalgConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FastlinalgRpath.cmake"
  DESTINATION lib/cmake/fastlinalg COMPONENT development)

# For pkg-config --static: what the library was made with.
set(fl_pc_private "-lstdc++ -lm -ldl -pthread")
if(FL_HAS_CUDA)
  set(fl_pc_private "-lcudart_static -lrt ${fl_pc_private}")
endif()
set(fl_pc_names fastlinalg)
if(FASTLINALG_CBLAS)
  list(APPEND fl_pc_names fastlinalg_cblas)
endif()
foreach(name IN LISTS fl_pc_names)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in" "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION lib/pkgconfig COMPONENT development)
endforeach()
